// Arguments of the kernel that decodes several messages and adds them up.
#pragma once
#include <vector>

#include "dispatch.h"
#include "dither.h"
#include "quantize.h"
#include "rotation.h"

namespace slimgrad {

enum class Transform { none, dither, rotation };

// One message; of its three arguments that of its transform counts, without `out` and `n`.
struct Summand {
  Transform transform;
  DequantizeArgs levels;
  UnditherArgs dither;
  RotateDequantizeArgs rotation;
};

struct SumArgs {
  std::vector<Summand> messages;
  int64_t n;
  bool serial;
  float* out;
};

SLIMGRAD_DECLARE(void sum_messages(const SumArgs& args))

}  // namespace slimgrad

// Arguments of the kernels that take the scales of buckets, alone or before symbols without a zero.
#pragma once
#include <cstdint>

#include "dispatch.h"
#include "quantize.h"

namespace slimgrad {

struct BucketArgs {
  const float* vector;
  int64_t n;
  int64_t bucket_size;
  Norm norm;
  bool serial;
  float* scales;
  uint8_t* packed;  // null where only scales are wanted
};

SLIMGRAD_DECLARE(void bucket_scales(const BucketArgs& args))
// One bit a component: its sign.
SLIMGRAD_DECLARE(void quantize_signs(const BucketArgs& args))
// `levels` begin with minus the smallest level; they are one more than the magnitudes.
SLIMGRAD_DECLARE(void quantize_no_zero(const QuantizeArgs& args))

}  // namespace slimgrad

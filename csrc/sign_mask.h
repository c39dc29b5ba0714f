// One bit an element: which elements of an array are above zero, or not a number.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct MaskProblem {
  const float* values;  // to pack; or the gradient to mask
  uint8_t* bits;        // ceil(n / 8) bytes, element i in bit i mod 8 of byte i / 8; rest 0
  float* out;           // when masking: values where the bit is set, 0 elsewhere
  int64_t n;
  bool serial;
};

SLIMGRAD_DECLARE(void pack_positive(const MaskProblem& problem))
SLIMGRAD_DECLARE(void apply_mask(const MaskProblem& problem))

}  // namespace slimgrad

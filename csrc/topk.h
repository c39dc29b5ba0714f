// Arguments of the selection of the largest magnitudes.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct TopKArgs {
  const float* vector;
  int64_t n;        // below 2^32
  int64_t k;        // 0 to n
  int64_t* places;  // k, ascending
};

// Largest means by the bits of the magnitude as an integer, so that NaN is above infinity. Of equal
// ones those with the lowest places are taken.
SLIMGRAD_DECLARE(void topk_places(const TopKArgs& args))

}  // namespace slimgrad

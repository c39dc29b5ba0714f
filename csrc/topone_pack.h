// Brings a block of the input into the form the accumulation wants: channels of a pixel contiguous,
// few enough of them that the block stays in the second-level cache.
#pragma once
#include "topone.h"
#include "topone_transpose.h"
#include "topone_vector.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

inline int64_t padded(int64_t channels) { return (channels + kLanes - 1) / kLanes * kLanes; }

// Row (n - n0) * h * w + pixel of `to`, padded(channels) floats long, becomes the channels
// [c0, c0 + channels) of that pixel, for the samples [n0, n1).
inline void pack(const TopOneProblem& t, int64_t n0, int64_t n1, int64_t c0, int64_t channels,
                 float* to) {
  const int64_t pixels = t.h * t.w, row = padded(channels);
  if (row != channels) std::memset(to, 0, sizeof(float) * size_t((n1 - n0) * pixels * row));
  for (int64_t n = n0; n < n1; ++n, to += pixels * row) {
    if (!t.x_last) {
      transpose(t.x + (n * t.c + c0) * pixels, pixels, channels, pixels, to, row);
      continue;
    }
    const float* from = t.x + n * pixels * t.c + c0;
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      int64_t i = 0;
      for (; i + kLanes <= channels; i += kLanes)
        store(to + pixel * row + i, load(from + pixel * t.c + i));
      for (; i < channels; ++i) to[pixel * row + i] = from[pixel * t.c + i];
    }
  }
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

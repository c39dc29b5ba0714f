// Top-1 filter gradient of a convolution: of each map of the output gradient only the place of the
// largest magnitude is kept, weighted with the signed sum of the map.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct TopOneProblem {
  const float* x;          // (n, c, h, w), or (n, h, w, c) when x_last
  const float* grad_out;   // (n, k, p, q), or (n, p, q, k) when grad_last
  float* out;              // (k, c / groups, r, s), or (k, r, s, c / groups) when out_last
  bool x_last, grad_last, out_last;
  int64_t n, c, h, w;
  int64_t k, p, q;
  int64_t r, s;
  int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  int64_t groups;
  float scale;
  bool serial;

  // Always inlined: an out-of-line copy would be shared between instruction sets.
  [[gnu::always_inline]] int64_t taps() const { return r * s; }
  [[gnu::always_inline]] int64_t group_channels() const { return c / groups; }
  [[gnu::always_inline]] int64_t group_filters() const { return k / groups; }
};

// False when scratch memory could not be had; `out` is then unspecified.
SLIMGRAD_DECLARE(bool topone_weight_grad(const TopOneProblem& problem))

}  // namespace slimgrad

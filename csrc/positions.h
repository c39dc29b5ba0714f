// Weight gradient of a convolution from a list of output positions, and the choice of positions.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

// out = sum over the listed positions of weight * (row of grad_out) x (input patch), channels last.
struct PositionProblem {
  const float* x;           // (n, h, w, c)
  const float* grad_out;    // (n, p, q, k)
  const int32_t* position;  // `count` numbers of rows of grad_out, ascending; null for all rows
  const float* weight;      // one a listed position; null for ones
  const float* mean;        // (n, k), taken off the rows of each sample first; null for zeros
  float* out;               // (k, r, s, c / groups)
  int64_t count;
  int64_t n, c, h, w;
  int64_t k, p, q;
  int64_t r, s;
  int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  int64_t groups;
  bool serial;
};

// False when scratch memory could not be had; `out` is then unspecified.
SLIMGRAD_DECLARE(bool position_weight_grad(const PositionProblem& problem))

// norm[i] = Euclidean norm of row i of a (rows, k) matrix.
struct RowNormProblem {
  const float* matrix;
  int64_t rows, k;
  float* norm;
  bool serial;
};
SLIMGRAD_DECLARE(void row_norms(const RowNormProblem& problem))

// For every sample of a (samples, rows, k) array the mean of its rows, and for every row the norm of
// its distance from that mean.
struct CentredNormProblem {
  const float* rows_of_samples;
  int64_t samples, rows, k;
  float* mean;  // (samples, k)
  float* norm;  // (samples, rows)
  bool serial;
};
SLIMGRAD_DECLARE(void centred_row_norms(const CentredNormProblem& problem))

// For every sample and tap the sum, over all output positions, of the input pixel that the tap
// sees; zeros outside the input.
struct PatchSumProblem {
  const float* x;  // (n, h, w, c)
  float* sum;      // (n, r, s, c)
  int64_t n, c, h, w;
  int64_t p, q, r, s;
  int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  bool serial;
};
SLIMGRAD_DECLARE(bool patch_sums(const PatchSumProblem& problem))

// Systematic sampling with inclusion probability min(1, score / threshold), the threshold chosen so
// that the probabilities add up to about `wanted`. Writes positions and inverse probabilities;
// returns how many. `start` in [0, 1) is the only random number.
struct SampleProblem {
  const float* score;  // finite, >= 0
  int64_t rows;
  double wanted, start;
  int32_t* position;  // room for `rows`
  float* weight;
};
SLIMGRAD_DECLARE(int64_t systematic_sample(const SampleProblem& problem))

}  // namespace slimgrad

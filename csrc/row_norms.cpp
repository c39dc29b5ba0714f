// Euclidean norms of the rows of a matrix, sixteen rows at a time.
#include "parallel.h"
#include "positions.h"
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kRows = 16;

#if defined(SLIMGRAD_ISA_avx512)
// Sums of neighbours, those of `a` before those of `b`: four rounds of it sum sixteen vectors.
SLIMGRAD_INLINE Floats neighbour_sums(Floats a, Floats b) {
  const WordLeaf even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
  const Floats first = __builtin_shuffle(a, b, even), second = __builtin_shuffle(a, b, even + 1);
  return first + second;
}

SLIMGRAD_INLINE void sums_of_rows(Floats* v, float* sums) {
#pragma GCC unroll 4
  for (int count = 8; count >= 1; count /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) v[i] = neighbour_sums(v[2 * i], v[2 * i + 1]);
  store(sums, v[0]);
}
#else
SLIMGRAD_INLINE void sums_of_rows(const Floats* v, float* sums) {
  for (int64_t i = 0; i < kRows; ++i) {
    alignas(64) float lane[16];
    store(lane, v[i]);
    for (int width = 1; width <= 8; width *= 2)
      for (int j = 0; j < 16; j += 2 * width) lane[j] += lane[j + width];
    sums[i] = lane[0];
  }
}
#endif

template <bool kCentred>
SLIMGRAD_INLINE Floats squares_of_row(const float* row, int64_t k, const float* mean) {
  Floats sum{};
  int64_t j = 0;
  for (; j + 16 <= k; j += 16) {
    Floats part = load_floats(row + j);
    if constexpr (kCentred) part = part - load_floats(mean + j);
    sum = sum + part * part;
  }
  if (j < k) {
    alignas(64) float padded[16] = {};
    for (int64_t i = j; i < k; ++i) padded[i - j] = kCentred ? row[i] - mean[i] : row[i];
    const Floats part = load_floats(padded);
    sum = sum + part * part;
  }
  return sum;
}

// Norms of `count` rows, at most kRows, less `mean` where there is one.
template <bool kCentred>
SLIMGRAD_INLINE void norms_of_rows(const float* matrix, int64_t count, int64_t k,
                                   const float* mean, float* norm) {
  constexpr int64_t kPrefetch = 4096;  // floats
  Floats v[kRows];
  if (count == kRows) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; ++i) {
      const float* row = matrix + i * k;
      prefetch(row, kPrefetch);
      v[i] = squares_of_row<kCentred>(row, k, mean);
    }
  } else {
    for (int64_t i = 0; i < kRows; ++i)
      v[i] = i < count ? squares_of_row<kCentred>(matrix + i * k, k, mean) : Floats{};
  }
  alignas(64) float sums[kRows];
  sums_of_rows(v, sums);
  for (int64_t i = 0; i < count; ++i) norm[i] = __builtin_sqrtf(sums[i]);
}

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void mean_of_rows(const float* matrix, int64_t rows, int64_t k, float* mean) {
  for (int64_t j = 0; j < k; ++j) mean[j] = 0.0f;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < k; ++j) mean[j] += matrix[i * k + j];
  const float share = 1.0f / static_cast<float>(rows);
  for (int64_t j = 0; j < k; ++j) mean[j] *= share;
}

}  // namespace

void row_norms(const RowNormProblem& t) {
  parallel_ranges(0, (t.rows + kRows - 1) / kRows, 4096 / kRows, t.serial,
                  [&](int64_t from, int64_t to) {
                    for (int64_t i = from * kRows; i < smaller(to * kRows, t.rows); i += kRows)
                      norms_of_rows<false>(t.matrix + i * t.k, smaller(kRows, t.rows - i), t.k,
                                           nullptr, t.norm + i);
                  });
}

void centred_row_norms(const CentredNormProblem& t) {
  parallel_ranges(0, t.samples, 1, t.serial, [&](int64_t from, int64_t to) {
    for (int64_t n = from; n < to; ++n) {
      const float* matrix = t.rows_of_samples + n * t.rows * t.k;
      float* mean = t.mean + n * t.k;
      mean_of_rows(matrix, t.rows, t.k, mean);
      for (int64_t i = 0; i < t.rows; i += kRows)
        norms_of_rows<true>(matrix + i * t.k, smaller(kRows, t.rows - i), t.k, mean,
                            t.norm + n * t.rows + i);
    }
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Products of a matrix and a thin one, which BLAS would do on threads of its own.
#include "thin.h"

#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kTile = 1024;  // columns of which the sums of a few ranks stay in the cache

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Sixteen components, zero behind the end.
SLIMGRAD_INLINE Floats load_some(const float* from, int64_t left) {
  if (left >= kLanes) return load_floats(from);
  float padded[kLanes] = {};
  for (int64_t i = 0; i < left; ++i) padded[i] = from[i];
  return load_floats(padded);
}

float sum_of_lanes(Floats lanes) {
  float parts[kLanes];
  store(parts, lanes);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) parts[i] = parts[i] + parts[i + half];
  return parts[0];
}

// Count rows of the factor at a time, so that the matrix is loaded once for all of them.
template <int Count>
SLIMGRAD_INLINE void dot_row(const float* row, const float* factor, int64_t columns, float* out) {
  Floats sums[Count];
  for (int j = 0; j < Count; ++j) sums[j] = all_floats(0.0f);
  for (int64_t c = 0; c < columns; c += kLanes) {
    const Floats x = load_some(row + c, columns - c);
    for (int j = 0; j < Count; ++j)
      sums[j] = sums[j] + x * load_some(factor + j * columns + c, columns - c);
  }
  for (int j = 0; j < Count; ++j) out[j] = sum_of_lanes(sums[j]);
}

}  // namespace

void thin_product(const ThinArgs& args) {
  const IeeeArithmetic arithmetic;
  for (int64_t i = 0; i < args.rows; ++i) {
    const float* row = args.matrix + i * args.columns;
    float* out = args.out + i * args.rank;
    int64_t j = 0;
    for (; j + 4 <= args.rank; j += 4)
      dot_row<4>(row, args.factor + j * args.columns, args.columns, out + j);
    for (; j < args.rank; ++j)
      dot_row<1>(row, args.factor + j * args.columns, args.columns, out + j);
  }
}

void thin_product_transposed(const ThinArgs& args) {
  const IeeeArithmetic arithmetic;
  for (int64_t begin = 0; begin < args.columns; begin += kTile) {
    const int64_t width = smaller(kTile, args.columns - begin);
    for (int64_t j = 0; j < args.rank; ++j)
      for (int64_t c = 0; c < width; ++c) args.out[j * args.columns + begin + c] = 0.0f;
    for (int64_t i = 0; i < args.rows; ++i) {
      const float* row = args.matrix + i * args.columns + begin;
      for (int64_t j = 0; j < args.rank; ++j) {
        const float weight = args.factor[i * args.rank + j];
        float* sums = args.out + j * args.columns + begin;
        for (int64_t c = 0; c < width; ++c) sums[c] = sums[c] + weight * row[c];
      }
    }
  }
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

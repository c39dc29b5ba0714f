// The scale of a bucket: a norm, the mean magnitude, or a power of two, with one fixed order of
// additions.
#pragma once
#include <cfloat>

#include "quantize.h"
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr uint32_t kInfinityBits = 0x7F800000u;
constexpr uint32_t kMagnitudeBits = 0x7FFFFFFFu;

SLIMGRAD_INLINE float float_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

SLIMGRAD_INLINE float canonical_nan() { return float_of(0x7FC00000u); }

// Sixteen lanes as one: lane k with lane k + 8, then 4, 2, 1.
template <typename Function>
SLIMGRAD_INLINE float folded(Floats v, const Function& function) {
  typedef float Four __attribute__((vector_size(16)));
  alignas(64) float p[16];
  store(p, v);
  Four four[4];
  __builtin_memcpy(four, p, sizeof four);
  Four all = function(function(four[0], four[2]), function(four[1], four[3]));
  all = function(all, Four{all[2], all[3], all[0], all[1]});
  return function(all, Four{all[1], all[0], all[3], all[2]})[0];
}

SLIMGRAD_INLINE float tree_sum(Floats v) {
  return folded(v, [](auto a, auto b) { return a + b; });
}
SLIMGRAD_INLINE float largest_lane(Floats v) {
  return folded(v, [](auto a, auto b) { return a > b ? a : b; });
}

// Maximum norm of the components given so far.
class LargestMagnitude {
 public:
  template <int kHalf>
  SLIMGRAD_INLINE void add(Floats a, Floats b) {
    const Words keep = all_words(kMagnitudeBits);
    part_[0] = larger(part_[0], as_words(a) & keep);
    part_[1] = larger(part_[1], as_words(b) & keep);
  }
  // Bits of max |x|; at least kInfinityBits when some component is not finite.
  SLIMGRAD_INLINE uint32_t bits() const {
    alignas(64) uint32_t lane[16];
    store(lane, larger(part_[0], part_[1]));
    for (int width = 8; width >= 1; width /= 2)
      for (int k = 0; k < width; ++k)
        lane[k] = lane[k] > lane[k + width] ? lane[k] : lane[k + width];
    return lane[0];
  }
  SLIMGRAD_INLINE float scale(const float*, int64_t) const {
    const uint32_t most = bits();
    return most >= kInfinityBits ? canonical_nan() : float_of(most);
  }

 private:
  Words part_[2]{};
};

// The least power of two that is not below the maximum; the maximum itself where float32 has none.
class PowerOfTwoAbove : public LargestMagnitude {
 public:
  SLIMGRAD_INLINE float scale(const float*, int64_t) const {
    const uint32_t most = bits();
    if (most >= kInfinityBits) return canonical_nan();
    constexpr uint32_t kOne = 0x00800000u;  // a step of the exponent
    uint32_t up = (most + (kOne - 1)) & ~(kOne - 1);
    if (most < kOne) up = most <= 1 ? most : 1u << (32 - __builtin_clz(most - 1));
    return float_of(up < kInfinityBits ? up : most);
  }
};

// One, or NaN where a component is not finite.
class Unit : public LargestMagnitude {
 public:
  SLIMGRAD_INLINE float scale(const float*, int64_t) const {
    return bits() >= kInfinityBits ? canonical_nan() : 1.0f;
  }
};

// Adds the n components of x to a norm, rows of 64 at a time; the last one is padded with zeros.
template <typename NormType>
SLIMGRAD_INLINE void add_components(NormType& norm, const float* x, int64_t n) {
  for (int64_t e = 0; e < n; e += 64) {
    const float* row = x + e;
    float padded[64];
    if (n - e < 64) {
      __builtin_memset(padded, 0, sizeof padded);
      __builtin_memcpy(padded, row, static_cast<size_t>(n - e) * sizeof(float));
      row = padded;
    }
    norm.template add<0>(load_floats(row), load_floats(row + 16));
    norm.template add<1>(load_floats(row + 32), load_floats(row + 48));
  }
}

// The L2 norm where the plain sum of squares leaves float32's range or loses precision.
__attribute__((noinline, cold)) float careful_l2_norm(const float* x, int64_t n) {
  LargestMagnitude magnitude;
  add_components(magnitude, x, n);
  const uint32_t most = magnitude.bits();
  if (most >= kInfinityBits) return canonical_nan();
  if (most == 0) return 0.0f;
  int exponent;
  (void)__builtin_frexp(static_cast<double>(float_of(most)), &exponent);
  const double down = __builtin_ldexp(1.0, -exponent);
  float p[64] = {};
  for (int64_t e = 0; e < n; ++e) {
    const float y = static_cast<float>(x[e] * down);
    p[e & 63] += y * y;
  }
  for (int width = 32; width >= 1; width /= 2)
    for (int k = 0; k < width; ++k) p[k] += p[k + width];
  const double norm = static_cast<double>(__builtin_sqrtf(p[0])) * __builtin_ldexp(1.0, exponent);
  return static_cast<float>(norm < FLT_MAX ? norm : FLT_MAX);
}

// L2 norm of the components given so far: 64 sums in ascending order, then a tree over them.
class SumOfSquares {
 public:
  template <int kHalf>
  SLIMGRAD_INLINE void add(Floats a, Floats b) {
    part_[2 * kHalf] = part_[2 * kHalf] + a * a;
    part_[2 * kHalf + 1] = part_[2 * kHalf + 1] + b * b;
  }
  // `x` and `n` are the bucket whose components were given.
  SLIMGRAD_INLINE float scale(const float* x, int64_t n) const {
    const float squares = sum();
    return is_exact(squares) ? __builtin_sqrtf(squares) : careful_l2_norm(x, n);
  }
  SLIMGRAD_INLINE float sum() const {
    return tree_sum((part_[0] + part_[2]) + (part_[1] + part_[3]));
  }
  // Whether no square that matters left float32's range.
  static SLIMGRAD_INLINE bool is_exact(float squares) {
    return squares >= 0x1p-80f && squares < __builtin_inff();
  }

 private:
  Floats part_[4]{};
};

// The mean magnitude where the plain sum leaves float32's range.
__attribute__((noinline)) float careful_mean(const float* x, int64_t n) {
  float p[64] = {};
  for (int64_t e = 0; e < n; ++e) p[e & 63] += __builtin_fabsf(x[e]) * 0x1p-64f;
  for (int width = 32; width >= 1; width /= 2)
    for (int k = 0; k < width; ++k) p[k] += p[k + width];
  if (!(p[0] < __builtin_inff())) return canonical_nan();
  const double mean = static_cast<double>(p[0] / static_cast<float>(n)) * 0x1p64;
  return static_cast<float>(mean < FLT_MAX ? mean : FLT_MAX);
}

// Mean magnitude of the components given so far, added in the order of SumOfSquares.
class MeanMagnitude {
 public:
  template <int kHalf>
  SLIMGRAD_INLINE void add(Floats a, Floats b) {
    const Words keep = all_words(kMagnitudeBits);
    part_[2 * kHalf] = part_[2 * kHalf] + as_floats(as_words(a) & keep);
    part_[2 * kHalf + 1] = part_[2 * kHalf + 1] + as_floats(as_words(b) & keep);
  }
  SLIMGRAD_INLINE float scale(const float* x, int64_t n) const {
    const float sum = tree_sum((part_[0] + part_[2]) + (part_[1] + part_[3]));
    return sum < __builtin_inff() ? sum / static_cast<float>(n) : careful_mean(x, n);
  }

 private:
  Floats part_[4]{};
};

template <typename NormType>
SLIMGRAD_INLINE float bucket_scale(const float* x, int64_t n) {
  NormType norm;
  add_components(norm, x, n);
  return norm.scale(x, n);
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

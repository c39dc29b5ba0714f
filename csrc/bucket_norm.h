// The scale of a bucket: its L2 or maximum norm, with one fixed order of additions.
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

// Calls step(lane, pointer) for 64-component rows; the last one is padded with zeros.
template <typename Step>
SLIMGRAD_INLINE void for_rows(const float* x, int64_t n, Step step) {
  int64_t e = 0;
  for (; e + 64 <= n; e += 64) step(x + e);
  if (e < n) {
    float row[64] = {};
    __builtin_memcpy(row, x + e, static_cast<size_t>(n - e) * sizeof(float));
    step(static_cast<const float*>(row));
  }
}

template <int kWidth>
SLIMGRAD_INLINE void fold(float* p) {
#pragma GCC unroll 8
  for (int k = 0; k < kWidth; ++k) p[k] += p[k + kWidth];
}

// p[k] += p[k + 8], then 4, 2, 1.
SLIMGRAD_INLINE float tree_sum(Floats v) {
  alignas(64) float p[16];
  store(p, v);
  fold<8>(p);
  fold<4>(p);
  fold<2>(p);
  fold<1>(p);
  return p[0];
}

SLIMGRAD_INLINE float sum_of_squares(const float* x, int64_t n) {
  Floats p0{}, p1{}, p2{}, p3{};
  for_rows(x, n, [&](const float* row) __attribute__((always_inline)) {
    const Floats a = load_floats(row), b = load_floats(row + 16);
    const Floats c = load_floats(row + 32), d = load_floats(row + 48);
    p0 = p0 + a * a;
    p1 = p1 + b * b;
    p2 = p2 + c * c;
    p3 = p3 + d * d;
  });
  return tree_sum((p0 + p2) + (p1 + p3));
}

// Bits of max |x|; at least kInfinityBits when some component is not finite.
SLIMGRAD_INLINE uint32_t largest_magnitude(const float* x, int64_t n) {
  const Words keep = all_words(kMagnitudeBits);
  Words m0{}, m1{};
  for_rows(x, n, [&](const float* row) __attribute__((always_inline)) {
    m0 = larger(m0, as_words(load_floats(row)) & keep);
    m1 = larger(m1, as_words(load_floats(row + 16)) & keep);
    m0 = larger(m0, as_words(load_floats(row + 32)) & keep);
    m1 = larger(m1, as_words(load_floats(row + 48)) & keep);
  });
  alignas(64) uint32_t lane[16];
  Lanes<Words>::store(lane, larger(m0, m1));
  uint32_t most = 0;
  for (uint32_t bits : lane) most = bits > most ? bits : most;
  return most;
}

// The L2 norm where the plain sum of squares leaves float32's range or loses precision.
__attribute__((noinline)) float careful_l2_norm(const float* x, int64_t n) {
  const uint32_t most = largest_magnitude(x, n);
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

template <Norm kNorm>
SLIMGRAD_INLINE float bucket_scale(const float* x, int64_t n) {
  if constexpr (kNorm == Norm::linf) {
    const uint32_t most = largest_magnitude(x, n);
    return most >= kInfinityBits ? canonical_nan() : float_of(most);
  } else {
    const float squares = sum_of_squares(x, n);
    if (squares >= 0x1p-80f && squares < __builtin_inff()) return __builtin_sqrtf(squares);
    return careful_l2_norm(x, n);
  }
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

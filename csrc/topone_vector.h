// The few vector operations of the top-1 kernel, for the instruction set being compiled.
// Multiplication and addition stay separate operations, so every instruction set rounds alike.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(SLIMGRAD_ISA_avx512) || defined(SLIMGRAD_ISA_avx2)
#include <immintrin.h>
#endif

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

#if defined(SLIMGRAD_ISA_avx512)
constexpr int kLanes = 16;
constexpr int kMaxVectors = 16;  // accumulators of one pass over the kept places
#elif defined(SLIMGRAD_ISA_avx2)
constexpr int kLanes = 8;
constexpr int kMaxVectors = 8;
#else
constexpr int kLanes = 4;
constexpr int kMaxVectors = 8;
#endif

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVec __attribute__((vector_size(4 * kLanes)));
typedef float LooseVec __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int32_t LooseIntVec __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

inline Vec load(const float* from) { return *reinterpret_cast<const LooseVec*>(from); }
inline IntVec load(const int32_t* from) { return *reinterpret_cast<const LooseIntVec*>(from); }
inline void store(float* to, Vec value) { *reinterpret_cast<LooseVec*>(to) = value; }

// The first `count` lanes, the others zero; memory behind them is not touched.
inline Vec load_part(const float* from, int count) {
#if defined(SLIMGRAD_ISA_avx512)
  return Vec(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), from));
#else
  Vec value = {};
  std::memcpy(&value, from, sizeof(float) * static_cast<size_t>(count));
  return value;
#endif
}

inline void store_part(float* to, Vec value, int count) {
#if defined(SLIMGRAD_ISA_avx512)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1u), __m512(value));
#else
  std::memcpy(to, &value, sizeof(float) * static_cast<size_t>(count));
#endif
}

// Lane j = from[j * stride] for j < count, the others zero.
inline Vec load_spread(const float* from, int32_t stride, int count) {
#if defined(SLIMGRAD_ISA_avx512)
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i index = _mm512_mullo_epi32(lane, _mm512_set1_epi32(stride));
  const auto mask = static_cast<__mmask16>((1u << count) - 1u);
  return Vec(_mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, index, from, 4));
#else
  Vec value = {};
  for (int j = 0; j < count; ++j) value[j] = from[static_cast<int64_t>(j) * stride];
  return value;
#endif
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

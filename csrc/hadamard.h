// Hadamard transform of a block of 512 components: sums and differences of components 1, 2, 4, ...,
// 256 apart, in this order. A block is 32 slots of sixteen lanes, so that distances below 16 lie
// inside a vector and the others between vectors.
#pragma once
#include "lane_layout.h"
#include "random_words.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kSlots = kBlock / 16;
constexpr int kNear = 8;             // slots that the first stages mix
constexpr int kFar = kSlots / kNear;  // groups of them, which the last two stages mix

#if defined(__clang__)
#define SLIMGRAD_PERMUTED(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#else
#define SLIMGRAD_PERMUTED(x, ...) __builtin_shuffle(x, MaskLeaf{__VA_ARGS__})
#endif

// Lane i becomes x[i - Distance] - x[i] where i has bit Distance set, x[i + Distance] + x[i]
// elsewhere. A product with 1 or -1 is exact, so fusing it changes no bit.
template <int Distance>
SLIMGRAD_INLINE FloatLeaf lane_stage(FloatLeaf x) {
#if defined(SLIMGRAD_ISA_avx512)
  constexpr float a = 1, b = Distance & 1 ? -1 : 1, c = Distance & 2 ? -1 : 1;
  constexpr float d = Distance & 4 ? -1 : 1, e = Distance & 8 ? -1 : 1;
  const FloatLeaf sign{a,     b,     c,     b * c,     d,     d * b,     d * c,     d * b * c,
                       e,     e * b, e * c, e * b * c, e * d, e * d * b, e * d * c, e * d * b * c};
  FloatLeaf partner;
  if constexpr (Distance == 1) partner = _mm512_maskz_permute_ps(kAllLanes, x, 0xB1);
  if constexpr (Distance == 2) partner = _mm512_maskz_permute_ps(kAllLanes, x, 0x4E);
  if constexpr (Distance == 4) partner = _mm512_maskz_shuffle_f32x4(kAllLanes, x, x, 0xB1);
  if constexpr (Distance == 8) partner = _mm512_maskz_shuffle_f32x4(kAllLanes, x, x, 0x4E);
  return _mm512_fmadd_ps(x, sign, partner);
#elif defined(SLIMGRAD_ISA_avx2)
  constexpr float a = 1, b = Distance & 1 ? -1 : 1, c = Distance & 2 ? -1 : 1;
  constexpr float d = Distance & 4 ? -1 : 1;
  const FloatLeaf sign{a, b, c, b * c, d, d * b, d * c, d * b * c};
  FloatLeaf partner;
  if constexpr (Distance == 1) partner = _mm256_permute_ps(x, 0xB1);
  if constexpr (Distance == 2) partner = _mm256_permute_ps(x, 0x4E);
  if constexpr (Distance == 4) partner = _mm256_permute2f128_ps(x, x, 0x01);
  return _mm256_fmadd_ps(x, sign, partner);
#else
  if constexpr (Distance == 1)
    return SLIMGRAD_PERMUTED(x, 1, 0, 3, 2) + x * FloatLeaf{1, -1, 1, -1};
  return SLIMGRAD_PERMUTED(x, 2, 3, 0, 1) + x * FloatLeaf{1, 1, -1, -1};
#endif
}
#undef SLIMGRAD_PERMUTED

template <int Distance, typename T>
SLIMGRAD_INLINE Pair<T> lane_stage(Pair<T> x) {
  if constexpr (Distance * sizeof(float) == sizeof(T))
    return {x.low + x.high, x.low - x.high};
  else
    return {lane_stage<Distance>(x.low), lane_stage<Distance>(x.high)};
}

template <int Count, int Distance>
SLIMGRAD_INLINE void slot_stage(Floats (&v)[Count]) {
#pragma GCC unroll 8
  for (int i = 0; i < Count; ++i) {
    if (i & Distance) continue;
    const Floats low = v[i], high = v[i + Distance];
    v[i] = low + high;
    v[i + Distance] = low - high;
  }
}

// Distances 1 to 64, of the components of eight neighbouring slots.
SLIMGRAD_INLINE void first_stages(Floats (&v)[kNear]) {
#pragma GCC unroll 8
  for (int i = 0; i < kNear; ++i)
    v[i] = lane_stage<8>(lane_stage<4>(lane_stage<2>(lane_stage<1>(v[i]))));
  slot_stage<kNear, 1>(v);
  slot_stage<kNear, 2>(v);
  slot_stage<kNear, 4>(v);
}

// Distances 128 and 256, of the components of four slots that lie eight apart.
SLIMGRAD_INLINE void last_stages(Floats (&v)[kFar]) {
  slot_stage<kFar, 1>(v);
  slot_stage<kFar, 2>(v);
}

// (a & mask) ^ b
SLIMGRAD_INLINE WordLeaf masked_xor(WordLeaf a, WordLeaf mask, WordLeaf b) {
#if defined(SLIMGRAD_ISA_avx512)
  return (WordLeaf)_mm512_ternarylogic_epi32((__m512i)a, (__m512i)mask, (__m512i)b, 0x6A);
#else
  return (a & mask) ^ b;
#endif
}
template <typename T>
SLIMGRAD_INLINE Pair<T> masked_xor(Pair<T> a, Pair<T> mask, Pair<T> b) {
  return {masked_xor(a.low, mask.low, b.low), masked_xor(a.high, mask.high, b.high)};
}

// x with its sign changed where the highest bit of `bits` is set.
SLIMGRAD_INLINE Floats flipped(Floats x, Words bits) {
  return as_floats(masked_xor(bits, all_words(0x80000000u), as_words(x)));
}

// The random signs of a block, one for each of its two rotations: bit q of a lane is the sign of
// slot q.
struct BlockSigns {
  Words first, second;
  BlockSigns() = default;
  SLIMGRAD_INLINE BlockSigns(uint64_t key, int64_t block) {
    constexpr int64_t kChunkBlocks = kChunk / kBlock;
    // Two vectors of words a block, where rounding takes one for 32 components.
    RandomWords words(key, block / kChunkBlocks * kChunk + block % kChunkBlocks * 64);
    first = words.next();
    second = words.next();
  }
};

// The lowest bit of a block's scale says so.
SLIMGRAD_INLINE bool rotated_twice(float scale) {
  uint32_t bits;
  __builtin_memcpy(&bits, &scale, 4);
  return bits & 1;
}

// Of a rotation whose last stages are left to do: does them, changes signs by `signs`, and does the
// first stages of the next rotation.
__attribute__((noinline)) void join_rotations(float* block, Words signs) {
  for (int near = 0; near < kNear; ++near) {
    Floats v[kFar];
    for (int far = 0; far < kFar; ++far) v[far] = load_floats(block + (far * kNear + near) * 16);
    last_stages(v);
    for (int far = 0; far < kFar; ++far)
      store(block + (far * kNear + near) * 16,
            flipped(v[far], signs << (31 - far * kNear - near)));
  }
  for (int far = 0; far < kFar; ++far) {
    Floats v[kNear];
    for (int near = 0; near < kNear; ++near) v[near] = load_floats(block + (far * kNear + near) * 16);
    first_stages(v);
    for (int near = 0; near < kNear; ++near) store(block + (far * kNear + near) * 16, v[near]);
  }
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Choices lane by lane, and sixteen-bit words taken from and put into the chosen lanes only.
#pragma once
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Words are below 2^31 in comparisons, where they are not said to be at most that. `prepend` stores
// 32 bytes at most, all before `to`; `take` reads 32 bytes at most, from `next` on.
SLIMGRAD_INLINE uint64_t lanes_in(unsigned mask) {
  return static_cast<unsigned>(__builtin_popcount(mask));
}

#if defined(SLIMGRAD_ISA_avx512)
using LaneMask = __mmask16;
// From entry `count` on: where the low halves of `count` dwords go to end at the sixteenth word.
constexpr uint16_t kLowHalves[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                     0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};

SLIMGRAD_INLINE LaneMask above(Words a, Words b) {
  return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b);
}
// Of words up to 2^31, b above 0.
SLIMGRAD_INLINE LaneMask not_below(Words a, Words b) {
  return _mm512_cmpge_epu32_mask((__m512i)a, (__m512i)b);
}
// In the chosen lanes the sum, or `a` moved by the width of a word; `a` in the others.
SLIMGRAD_INLINE Words plus_where(LaneMask mask, Words a, Words b) {
  return (Words)_mm512_mask_add_epi32((__m512i)a, mask, (__m512i)a, (__m512i)b);
}
SLIMGRAD_INLINE Words down_where(LaneMask mask, Words a) {
  return (Words)_mm512_mask_srli_epi32((__m512i)a, mask, (__m512i)a, 16);
}
SLIMGRAD_INLINE Words up_where(LaneMask mask, Words a) {
  return (Words)_mm512_mask_slli_epi32((__m512i)a, mask, (__m512i)a, 16);
}
// The low halves of the chosen lanes, lowest lane first; returns where they begin.
SLIMGRAD_INLINE uint8_t* prepend(uint8_t* to, LaneMask mask, Words x) {
  const uint64_t count = lanes_in(mask);
  const __m512i packed = _mm512_maskz_compress_epi32(mask, (__m512i)x);
  const __m512i order = _mm512_zextsi256_si512(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLowHalves + count)));
  const __m512i words = _mm512_maskz_permutexvar_epi16(~0u, order, packed);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to - 32), _mm512_castsi512_si256(words));
  return to - 2 * count;
}
// Deals the next words to the chosen lanes and moves `next` behind them; 0 in the other lanes.
SLIMGRAD_INLINE Words take(const uint8_t*& next, LaneMask mask) {
  const __m512i words = _mm512_maskz_cvtepu16_epi32(
      kAllLanes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(next)));
  next += 2 * lanes_in(mask);
  return (Words)_mm512_maskz_expand_epi32(mask, words);
}
SLIMGRAD_INLINE Words truncated(Floats a) {
  return (Words)_mm512_maskz_cvttps_epi32(kAllLanes, a);
}
#elif defined(SLIMGRAD_ISA_avx2)
using LaneMask = Pair<MaskLeaf>;
SLIMGRAD_INLINE LaneMask above(Words a, Words b) {
  return {(MaskLeaf)a.low > (MaskLeaf)b.low, (MaskLeaf)a.high > (MaskLeaf)b.high};
}

// Byte shuffles of eight words for every mask of eight lanes: chosen words to the end, and from the
// front to the chosen lanes.
struct WordShuffles {
  alignas(16) uint8_t gather[256][16] = {}, deal[256][16] = {};
  constexpr WordShuffles() {
    for (int mask = 0; mask < 256; ++mask) {
      int count = 0, place = 16;
      for (int lane = 7; lane >= 0; --lane) {
        if ((mask >> lane & 1) == 0) continue;
        gather[mask][--place] = static_cast<uint8_t>(2 * lane + 1);
        gather[mask][--place] = static_cast<uint8_t>(2 * lane);
      }
      for (int lane = 0; lane < 8; ++lane) {
        const bool is_chosen = mask >> lane & 1;
        for (int half = 0; half < 2; ++half)
          deal[mask][2 * lane + half] = static_cast<uint8_t>(is_chosen ? 2 * count + half : 0x80);
        count += is_chosen;
      }
    }
  }
};
constexpr WordShuffles kShuffles;  // no code of this instruction set runs when it is loaded

SLIMGRAD_INLINE __m128i shuffled(__m128i words, const uint8_t* order) {
  return _mm_shuffle_epi8(words, _mm_load_si128(reinterpret_cast<const __m128i*>(order)));
}
SLIMGRAD_INLINE unsigned lane_bits(MaskLeaf mask) {
  return static_cast<unsigned>(_mm256_movemask_ps((__m256)mask));
}
SLIMGRAD_INLINE uint8_t* prepend(uint8_t* to, MaskLeaf mask, WordLeaf x) {
  const __m256i low = (__m256i)(x & 0xFFFF);
  const __m256i halves = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
  const unsigned bits = lane_bits(mask);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to - 16),
                   shuffled(_mm256_castsi256_si128(halves), kShuffles.gather[bits]));
  return to - 2 * lanes_in(bits);
}
SLIMGRAD_INLINE uint8_t* prepend(uint8_t* to, LaneMask mask, Words x) {
  return prepend(prepend(to, mask.high, x.high), mask.low, x.low);
}
SLIMGRAD_INLINE WordLeaf take(const uint8_t*& next, MaskLeaf mask) {
  const unsigned bits = lane_bits(mask);
  const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(next));
  next += 2 * lanes_in(bits);
  return (WordLeaf)_mm256_cvtepu16_epi32(shuffled(words, kShuffles.deal[bits]));
}
SLIMGRAD_INLINE Words take(const uint8_t*& next, LaneMask mask) {
  const WordLeaf low = take(next, mask.low);
  return {low, take(next, mask.high)};
}
SLIMGRAD_INLINE Words truncated(Floats a) {
  return {(WordLeaf)_mm256_cvttps_epi32(a.low), (WordLeaf)_mm256_cvttps_epi32(a.high)};
}
#else
using LaneMask = Masks;
SLIMGRAD_INLINE MaskLeaf above(WordLeaf a, WordLeaf b) { return (MaskLeaf)a > (MaskLeaf)b; }
template <typename T>
SLIMGRAD_INLINE auto above(Pair<T> a, Pair<T> b) -> Pair<decltype(above(a.low, b.low))> {
  return {above(a.low, b.low), above(a.high, b.high)};
}
SLIMGRAD_INLINE uint8_t* prepend(uint8_t* to, LaneMask mask, Words x) {
  uint32_t words[16], is_chosen[16];
  __builtin_memcpy(words, &x, sizeof words);
  __builtin_memcpy(is_chosen, &mask, sizeof is_chosen);
  for (int lane = 15; lane >= 0; --lane) {
    to[-2] = static_cast<uint8_t>(words[lane]);
    to[-1] = static_cast<uint8_t>(words[lane] >> 8);
    to -= is_chosen[lane] & 2;
  }
  return to;
}
SLIMGRAD_INLINE Words take(const uint8_t*& next, LaneMask mask) {
  uint32_t is_chosen[16], words[16];
  __builtin_memcpy(is_chosen, &mask, sizeof is_chosen);
  for (int lane = 0; lane < 16; ++lane) {
    words[lane] = (next[0] | static_cast<uint32_t>(next[1]) << 8) & is_chosen[lane];
    next += is_chosen[lane] & 2;
  }
  return Lanes<Words>::load(words);
}
SLIMGRAD_INLINE WordLeaf truncated(FloatLeaf a) {
  return (WordLeaf) __builtin_convertvector(a, MaskLeaf);
}
template <typename T>
SLIMGRAD_INLINE auto truncated(Pair<T> a) -> Pair<decltype(truncated(a.low))> {
  return {truncated(a.low), truncated(a.high)};
}
#endif
#if !defined(SLIMGRAD_ISA_avx512)
SLIMGRAD_INLINE LaneMask not_below(Words a, Words b) { return above(a, b - all_words(1)); }
SLIMGRAD_INLINE Words plus_where(LaneMask mask, Words a, Words b) { return select(mask, a + b, a); }
SLIMGRAD_INLINE Words down_where(LaneMask mask, Words a) { return select(mask, a >> 16, a); }
SLIMGRAD_INLINE Words up_where(LaneMask mask, Words a) { return select(mask, a << 16, a); }
#endif

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

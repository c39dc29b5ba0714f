// The symbol of a slot by binary search over at most sixteen, two vectors of slots in one register.
#pragma once
#include "rans_step.h"

#if defined(SLIMGRAD_ISA_avx512)
namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// A FoundPair with the symbols of the second in the upper halves of `both`.
struct SearchedPair {
  Words both;
  Found first, second;
  SLIMGRAD_INLINE Words nibbles() const { return (both | (both >> 12)) & all_words(0xFF); }
};

// Operations on vectors of 32 words of 16 bits.
struct Halfwords {
  static constexpr __mmask32 kOdd = 0xAAAAAAAA, kEvery = 0xFFFFFFFF;
  static SLIMGRAD_INLINE __m512i packed(Words first, Words second) {
    return _mm512_mask_blend_epi16(kOdd, (__m512i)first,
                                   _mm512_maskz_slli_epi32(kAllLanes, (__m512i)second, 16));
  }
  static SLIMGRAD_INLINE Words even(__m512i a) { return (Words)a & all_words(0xFFFF); }
  static SLIMGRAD_INLINE Words odd(__m512i a) { return (Words)a >> 16; }
  static SLIMGRAD_INLINE __m512i entry(__m512i table, __m512i i) {
    return _mm512_maskz_permutexvar_epi16(kEvery, i, table);
  }
  static SLIMGRAD_INLINE __m512i entry(__m512i low, __m512i high, __m512i i) {
    return _mm512_permutex2var_epi16(low, i, high);
  }
  static SLIMGRAD_INLINE __mmask32 at_least(__m512i slot, __m512i start) {
    return _mm512_cmp_epu16_mask(slot, start, _MM_CMPINT_NLT);
  }
  static SLIMGRAD_INLINE __m512i plus_where(__mmask32 mask, __m512i a, short b) {
    return _mm512_mask_add_epi16(a, mask, a, _mm512_set1_epi16(b));
  }
};

class SlotSearch : Halfwords {
 public:
  SLIMGRAD_INLINE SlotSearch(const uint16_t* frequencies, int count) {
    uint16_t starts[32] = {}, each[32] = {};
    for (int i = 0; i < 16; ++i) {
      each[i] = i < count ? frequencies[i] : 0;
      starts[i + 1] = static_cast<uint16_t>(starts[i] + each[i]);
    }
    for (int i = 0; i < 3; ++i)
      quarters_[i] = _mm512_set1_epi16(static_cast<short>(starts[4 * i + 4]));
    second_ = load(starts + 2);
    next_ = load(starts + 1);
    start_ = load(starts);
    frequency_ = load(each);
  }
  SLIMGRAD_INLINE SearchedPair find(Words first, Words second) const {
    const __m512i slot = _mm512_and_si512(packed(first, second), _mm512_set1_epi16(kTotal - 1));
    __m512i j = _mm512_maskz_mov_epi16(at_least(slot, quarters_[0]), _mm512_set1_epi16(4));
    j = _mm512_mask_mov_epi16(j, at_least(slot, quarters_[1]), _mm512_set1_epi16(8));
    j = _mm512_mask_mov_epi16(j, at_least(slot, quarters_[2]), _mm512_set1_epi16(12));
    j = step(slot, second_, j, 2);
    j = step(slot, next_, j, 1);
    const __m512i place = _mm512_sub_epi16(slot, entry(start_, j));
    const __m512i frequency = entry(frequency_, j);
    return {(Words)j,
            {even(j), even(frequency), even(place)},
            {odd(j), odd(frequency), odd(place)}};
  }

 private:
  static SLIMGRAD_INLINE __m512i load(const uint16_t* table) {
    uint16_t wide[32] = {};
    for (int i = 0; i < 16; ++i) wide[i] = table[i];
    return _mm512_loadu_si512(wide);
  }
  static SLIMGRAD_INLINE __m512i step(__m512i slot, __m512i table, __m512i j, short width) {
    return plus_where(at_least(slot, entry(table, j)), j, width);
  }

  __m512i quarters_[3], second_, next_, start_, frequency_;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad
#endif

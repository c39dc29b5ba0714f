// Frequencies of sixteen symbols behind each of sixteen contexts, in registers: two vectors of
// contexts and symbols, or of contexts and slots, at a time.
#pragma once
#include "slot_search.h"

#if defined(SLIMGRAD_ISA_avx512)
namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Entry [context + 16 * symbol] of a table of 256.
class ContextTable : Halfwords {
 public:
  template <typename Value>
  SLIMGRAD_INLINE explicit ContextTable(const Value& value) {
    uint16_t entries[256];
    for (int i = 0; i < 256; ++i) entries[i] = static_cast<uint16_t>(value(i & 15, i >> 4));
    for (int i = 0; i < 8; ++i) part_[i] = _mm512_loadu_si512(entries + 32 * i);
  }
  SLIMGRAD_INLINE __m512i operator[](__m512i i) const {
    const __mmask32 third = _mm512_test_epi16_mask(i, _mm512_set1_epi16(64));
    const __mmask32 second = _mm512_test_epi16_mask(i, _mm512_set1_epi16(128));
    const __m512i low = _mm512_mask_blend_epi16(third, entry(part_[0], part_[1], i),
                                                entry(part_[2], part_[3], i));
    const __m512i high = _mm512_mask_blend_epi16(third, entry(part_[4], part_[5], i),
                                                 entry(part_[6], part_[7], i));
    return _mm512_mask_blend_epi16(second, low, high);
  }

 private:
  __m512i part_[8];
};

// Frequencies and their sums as the contexts' rows hold them; what is not there is 0.
struct ContextRows {
  uint16_t frequency[16][16] = {}, start[16][17] = {};
  ContextRows(const uint16_t* frequencies, int bits) {
    for (int context = 0; context < context_count(bits); ++context)
      for (int symbol = 0; symbol < 1 << bits; ++symbol)
        frequency[context][symbol] = frequencies[(context << bits) + symbol];
    for (int context = 0; context < 16; ++context)
      for (int symbol = 0; symbol < 16; ++symbol)
        start[context][symbol + 1] =
            static_cast<uint16_t>(start[context][symbol] + frequency[context][symbol]);
  }
};

class ContextCoder : Halfwords {
 public:
  explicit SLIMGRAD_INLINE ContextCoder(const ContextRows& rows)
      : frequency_([&](int context, int symbol) { return rows.frequency[context][symbol]; }),
        start_([&](int context, int symbol) { return rows.start[context][symbol]; }) {}
  // Codes the symbols of the second vector, then those of the first.
  SLIMGRAD_INLINE void push(Words& first, Words& second, Words first_symbol, Words second_symbol,
                            Words first_context, Words second_context, uint8_t*& to) const {
    const __m512i i = packed(first_context | (first_symbol << 4),
                             second_context | (second_symbol << 4));
    const __m512i frequency = frequency_[i], start = start_[i];
    second = pushed_one(second, odd(frequency), odd(start), to);
    first = pushed_one(first, even(frequency), even(start), to);
  }

 private:
  static SLIMGRAD_INLINE Words pushed_one(Words x, Words frequency, Words start, uint8_t*& to) {
    // A step of Newton's from fourteen right bits, and 2^-20 less: see CodeTable.
    const Floats divisor = to_floats(frequency);
    const Floats near = _mm512_maskz_rcp14_ps(kAllLanes, divisor);
    return pushed(x, frequency, start, near * (all_floats(2.0f - 0x1p-20f) - divisor * near), to);
  }
  ContextTable frequency_, start_;
};

// Binary search in the row of the context. The index of the next table grows by a higher bit each
// step, so that the steps' outcomes stand in the opposite order at the end.
class ContextSearch : Halfwords {
 public:
  explicit SLIMGRAD_INLINE ContextSearch(const ContextRows& rows) {
    uint16_t entries[4][128] = {};
    for (int depth = 0; depth < 4; ++depth) {
      for (int i = 0; i < 16 << depth; ++i) {
        const int symbol = reversed(i >> 4) + (8 >> depth);
        entries[depth][i] = rows.start[i & 15][symbol];
      }
    }
    uint16_t symbols[32];
    for (int i = 0; i < 32; ++i) symbols[i] = static_cast<uint16_t>(reversed(i & 15));
    first_ = _mm512_loadu_si512(entries[0]);
    second_ = _mm512_loadu_si512(entries[1]);
    for (int i = 0; i < 2; ++i) third_[i] = _mm512_loadu_si512(entries[2] + 32 * i);
    for (int i = 0; i < 4; ++i) fourth_[i] = _mm512_loadu_si512(entries[3] + 32 * i);
    symbol_ = _mm512_loadu_si512(symbols);
  }
  SLIMGRAD_INLINE SearchedPair find(Words first, Words second, Words first_context,
                                    Words second_context) const {
    const __m512i slot = _mm512_and_si512(packed(first, second), _mm512_set1_epi16(kTotal - 1));
    __m512i i = packed(first_context, second_context);
    __m512i low = _mm512_setzero_si512(), high = _mm512_set1_epi16(kTotal);
    step(slot, entry(first_, i), 16, i, low, high);
    step(slot, entry(second_, i), 32, i, low, high);
    step(slot, entry(third_[0], third_[1], i), 64, i, low, high);
    const __mmask32 upper = _mm512_test_epi16_mask(i, _mm512_set1_epi16(64));
    const __m512i start = _mm512_mask_blend_epi16(upper, entry(fourth_[0], fourth_[1], i),
                                                  entry(fourth_[2], fourth_[3], i));
    step(slot, start, 128, i, low, high);
    const __m512i symbol = entry(symbol_, _mm512_maskz_srli_epi16(kEvery, i, 4));
    const __m512i frequency = _mm512_sub_epi16(high, low), place = _mm512_sub_epi16(slot, low);
    return {(Words)symbol,
            {even(symbol), even(frequency), even(place)},
            {odd(symbol), odd(frequency), odd(place)}};
  }

 private:
  static constexpr int reversed(int i) {
    return (i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | (i & 8) >> 3;
  }
  static SLIMGRAD_INLINE void step(__m512i slot, __m512i start, short outcome, __m512i& i,
                                   __m512i& low, __m512i& high) {
    const __mmask32 above = at_least(slot, start);
    i = plus_where(above, i, outcome);
    low = _mm512_mask_mov_epi16(low, above, start);
    high = _mm512_mask_mov_epi16(start, above, high);
  }

  __m512i first_, second_, third_[2], fourth_[4], symbol_;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad
#endif

// Code words of units, and whole streams of them written.
#pragma once
#include "bit_stream.h"
#include "huffman_units.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Every unit's word above its length; 0 for a unit without one.
struct Codebook {
  static constexpr int kLengthBits = 4;
  uint16_t words[256] = {};

  // Words of one length are consecutive numbers in the order of the units.
  Codebook(const uint8_t* lengths, int values) {
    uint32_t next = 0;
    for (int length = 1; length <= kLongest; ++length, next <<= 1)
      for (int u = 0; u < values; ++u)
        if (lengths[u] == length)
          words[u] = static_cast<uint16_t>(next++ << kLengthBits | static_cast<uint32_t>(length));
  }
};

SLIMGRAD_INLINE int length_of(uint32_t word) { return word & ((1 << Codebook::kLengthBits) - 1); }
SLIMGRAD_INLINE uint64_t bits_of(uint32_t word) { return word >> Codebook::kLengthBits; }

// Units behind one another in one stream; `missing` stays true once a unit had no word.
class StreamWriter {
 public:
  explicit StreamWriter(const Codebook& book) : book_(book) {
#if defined(SLIMGRAD_ISA_avx512)
    for (int i = 0; i < 8; ++i) part_[i] = _mm512_loadu_si512(book.words + 32 * i);
#endif
  }
  bool missing() const { return missing_; }

  // The first byte behind the words.
  uint8_t* write(const uint8_t* units, int64_t count, uint8_t* out) {
    BitWriter writer{out};
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) put_32(writer, units + i);
    for (; i < count; ++i) {
      const uint32_t word = book_.words[units[i]];
      missing_ |= word == 0;
      writer.append(bits_of(word), length_of(word));
      writer.flush();
    }
    return writer.end();
  }

 private:
#if defined(SLIMGRAD_ISA_avx512)
  // The words of 32 units at once, then joined to one for each four.
  SLIMGRAD_INLINE void put_32(BitWriter& writer, const uint8_t* units) {
    const __m512i unit = _mm512_maskz_cvtepu8_epi16(
        ~__mmask32{0}, _mm256_loadu_si256((const __m256i*)units));
    const __mmask32 bit6 = _mm512_test_epi16_mask(unit, _mm512_set1_epi16(64));
    const __mmask32 bit7 = _mm512_test_epi16_mask(unit, _mm512_set1_epi16(128));
    const __m512i low = _mm512_mask_blend_epi16(
        bit6, _mm512_permutex2var_epi16(part_[0], unit, part_[1]),
        _mm512_permutex2var_epi16(part_[2], unit, part_[3]));
    const __m512i high = _mm512_mask_blend_epi16(
        bit6, _mm512_permutex2var_epi16(part_[4], unit, part_[5]),
        _mm512_permutex2var_epi16(part_[6], unit, part_[7]));
    const __m512i word = _mm512_mask_blend_epi16(bit7, low, high);
    missing_ |= _mm512_testn_epi16_mask(word, word) != 0;
    // Lanes of 16 bits joined to lanes of 32 and these to lanes of 64, the first unit on top.
    const Words length = (Words)word & 0x000F000F, bits = (Words)word >> 4 & 0x0FFF0FFF;
    const Words second = length >> 16;
    const Words two = ((bits & 0xFFFF) << second) | bits >> 16;
    const Quads of_two = (Quads)((length & 0xFFFF) + second), third = of_two >> 32;
    const Quads four = (((Quads)two & 0xFFFFFFFF) << third) | (Quads)two >> 32;
    const Quads of_four = (of_two & 0xFFFFFFFF) + third;
    alignas(64) int64_t joined[8];
    Lanes<Quads>::store(joined, four << 6 | of_four);
    for (const int64_t each : joined) {
      writer.append(each >> 6, each & 63);
      writer.flush();
    }
  }
  __m512i part_[8];
#else
  // Four words at a time: the two halves do not wait for each other.
  SLIMGRAD_INLINE void put_32(BitWriter& writer, const uint8_t* units) {
    for (int i = 0; i < 32; i += 4) {
      const uint32_t a = book_.words[units[i]], b = book_.words[units[i + 1]];
      const uint32_t c = book_.words[units[i + 2]], d = book_.words[units[i + 3]];
      missing_ |= a == 0 || b == 0 || c == 0 || d == 0;
      const uint64_t ab = bits_of(a) << length_of(b) | bits_of(b);
      const uint64_t cd = bits_of(c) << length_of(d) | bits_of(d);
      const int later = length_of(c) + length_of(d);
      writer.append(ab << later | cd, length_of(a) + length_of(b) + later);
      writer.flush();
    }
  }
#endif
  const Codebook& book_;
  bool missing_ = false;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

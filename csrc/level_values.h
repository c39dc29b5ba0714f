// The value of a symbol of more than four bits, computed where its levels have a formula.
//
// A table of more than sixteen values is looked up in memory, lane by lane, which takes several
// times as long as the two products or the shift that equal levels or powers of two need.
#pragma once
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Bits of a symbol above the lowest `bits` are ignored.
class SymbolParts {
 public:
  explicit SLIMGRAD_INLINE SymbolParts(int bits)
      : ones_(all_words((1u << (bits - 1)) - 1)), to_top_(32 - bits) {}
  SLIMGRAD_INLINE Words magnitude(Words symbol) const { return symbol & ones_; }
  SLIMGRAD_INLINE Floats with_sign(Floats level, Words symbol) const {
    return as_floats(masked_or(symbol << to_top_, all_words(0x80000000u), as_words(level)));
  }

 private:
  Words ones_;
  int to_top_;
};

// j / m, from a product that is exact and one that is small.
class UniformValues {
 public:
  explicit UniformValues(int bits)
      : parts_(bits), exact_(all_floats(exact(bits))), rest_(all_floats(rest(bits))) {}
  SLIMGRAD_INLINE Floats operator[](Words symbol) const {
    const Floats j = to_floats(parts_.magnitude(symbol));
    return parts_.with_sign(j * exact_ + j * rest_, symbol);
  }

 private:
  static double inverse(int bits) { return 1.0 / ((1 << (bits - 1)) - 1); }
  // Sixteen significant bits, so that products with seven more are exact.
  static float exact(int bits) {
    float x = static_cast<float>(inverse(bits));
    uint32_t word;
    __builtin_memcpy(&word, &x, 4);
    word &= 0xFFFFFF00u;
    __builtin_memcpy(&x, &word, 4);
    return x;
  }
  static float rest(int bits) {
    return static_cast<float>(inverse(bits) - static_cast<double>(exact(bits)));
  }
  SymbolParts parts_;
  Floats exact_, rest_;
};

// 0 and 2^(j - m), from exponents.
class ExponentialValues {
 public:
  explicit ExponentialValues(int bits)
      : parts_(bits), offset_(all_words(128u - (1u << (bits - 1)))) {}
  SLIMGRAD_INLINE Floats operator[](Words symbol) const {
    const Words j = parts_.magnitude(symbol);
    const Words level = select(nonzero(j), (j + offset_) << 23, Words{});
    return parts_.with_sign(as_floats(level), symbol);
  }

 private:
  SymbolParts parts_;
  Words offset_;
};

// Whether `formula` gives all 2^bits values of the table, bit by bit but for the sign of zero.
template <typename Formula>
bool gives(const Formula& formula, const float* values, int bits) {
  for (int first = 0; first < 1 << bits; first += 16) {
    uint32_t symbol[16];
    float value[16];
    for (int i = 0; i < 16; ++i) symbol[i] = static_cast<uint32_t>(first + i);
    store(value, formula[load_words(symbol)]);
    for (int i = 0; i < 16; ++i)
      if (!(value[i] == values[first + i])) return false;
  }
  return true;
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

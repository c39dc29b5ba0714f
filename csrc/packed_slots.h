// Symbols of one block packed in registers, slot after slot of the layout.
//
// A vector of symbols arrives as a grid leaves it: magnitudes GridType::kShift bits up with the
// sign of the component, or, from a signed grid, integers there; bits around them are dropped.
#pragma once
#include <utility>

#include "rounding.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// `bits` once in every group of `width` bits.
constexpr uint32_t repeated(uint32_t bits, int width) {
  uint32_t all = 0;
  for (int shift = 0; shift < 32; shift += width) all |= bits << shift;
  return all;
}

// A plane of width kWidth: its slots of one dword, each moved to its place from bit kFrom.
template <int kWidth, int kFrom>
class PlaneDword {
 public:
  template <int kSlot>
  SLIMGRAD_INLINE void put(Words symbol) {
    constexpr uint32_t ones = (1u << kWidth) - 1;
    const Words moved_here = moved<kFrom, kSlot * kWidth>(symbol);
    const Words mask = all_words(ones << (kSlot * kWidth));
    word = kSlot == 0 ? moved_here & mask : masked_or(moved_here, mask, word);
  }
  Words word{};
};

template <int kBits, typename GridType, bool kSigned = GridType::kSigned>
class PackedSlots;

// Magnitudes and signs. A symbol enters at the top of its dword and sinks as others follow, which
// takes the same few constants for every one.
template <int kBits, typename GridType>
class PackedSlots<kBits, GridType, false> {
 public:
  static constexpr int kDwords = kBits;      // vectors of dwords a block
  static constexpr int kSlots = 32 / kBits;  // a dword
  template <int kSlot>
  SLIMGRAD_INLINE void put(Words magnitude, Words component) {
    constexpr uint32_t ones = (1u << (kBits - 1)) - 1;
    dword_ = masked_or(moved<GridType::kShift, 32 - kBits>(magnitude),
                       all_words(ones << (32 - kBits)), dword_ >> kBits);
    dword_ = masked_or(component, all_words(0x80000000u), dword_);
  }
  // Adding all ones to a magnitude carries into its sign bit unless the magnitude is zero.
  SLIMGRAD_INLINE void store_dword(uint8_t* out, int dword) {
    const Words magnitudes = all_words(repeated((1u << (kBits - 1)) - 1, kBits));
    store(out + dword * 64, dword_ & (((dword_ & magnitudes) + magnitudes) | magnitudes));
  }

 private:
  Words dword_{};
};

// Magnitudes of two bits in one plane, signs in another.
template <typename GridType>
class PackedSlots<3, GridType, false> {
 public:
  static constexpr int kDwords = 2;
  static constexpr int kSlots = 16;
  template <int kSlot>
  SLIMGRAD_INLINE void put(Words magnitude, Words component) {
    const Words top = moved<GridType::kShift, 30>(magnitude) & all_words(0xC0000000u);
    magnitudes_ = top | (magnitudes_ >> 2);
    signs_ = masked_or(component & (top | (top << 1)), all_words(0x80000000u), signs_ >> 1);
  }
  SLIMGRAD_INLINE void store_dword(uint8_t* out, int dword) {
    store(out + dword * 64, magnitudes_);
    if (dword == 1) store(out + 128, signs_);
  }

 private:
  Words magnitudes_{}, signs_{};
};

// Integers of two's complement, above -2^(kBits - 1); turned into sign and magnitude a dword at a
// time.
template <int kBits, typename GridType>
class PackedSlots<kBits, GridType, true> {
 public:
  static constexpr int kDwords = kBits;
  static constexpr int kSlots = 32 / kBits;
  template <int kSlot>
  SLIMGRAD_INLINE void put(Words integer, Words) {
    dword_.template put<kSlot>(integer);
  }
  SLIMGRAD_INLINE void store_dword(uint8_t* out, int dword) {
    const Words sign = dword_.word & all_words(repeated(1u << (kBits - 1), kBits));
    const Words one = sign >> (kBits - 1);
    store(out + dword * 64, (dword_.word ^ (sign - one)) + one);
  }

 private:
  PlaneDword<kBits, GridType::kShift> dword_;
};

template <typename GridType>
class PackedSlots<3, GridType, true> {
 public:
  static constexpr int kDwords = 2;
  static constexpr int kSlots = 16;
  template <int kSlot>
  SLIMGRAD_INLINE void put(Words integer, Words) {
    low_.template put<kSlot>(integer);
    negative_.template put<kSlot>(integer);
    sign_.template put<kSlot>(integer);
  }
  SLIMGRAD_INLINE void store_dword(uint8_t* out, int dword) {
    const Words one = negative_.word & all_words(repeated(1, 2));
    store(out + dword * 64, (low_.word ^ negative_.word) + one);
    if (dword == 0)
      first_signs_ = sign_.word;
    else
      store(out + 128, first_signs_ | (sign_.word << 16));
  }

 private:
  static constexpr int kSignBit = GridType::kShift + 2;
  PlaneDword<2, GridType::kShift> low_;
  PlaneDword<2, kSignBit> negative_;  // the sign in both bits
  PlaneDword<1, kSignBit> sign_;
  Words first_signs_{};
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

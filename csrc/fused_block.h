// One block of a bucket of whole blocks rounded and packed in registers, for widths worth code of
// their own: 2, 3, 4 and 8 bits.
#pragma once
#include "quantize_block.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kPrefetch = 8192;  // components ahead of the norms

constexpr bool has_fused_block(int bits) {
  return bits == 2 || bits == 3 || bits == 4 || bits == 8;
}

// `bits` once in every group of `width` bits.
constexpr uint32_t repeated(uint32_t bits, int width) {
  uint32_t all = 0;
  for (int shift = 0; shift < 32; shift += width) all |= bits << shift;
  return all;
}

// Symbols of a block packed in the order of its slots. A symbol enters at the top of its dword and
// sinks as others follow, which takes the same few constants for every one. Magnitudes arrive kShift
// bits up, above bits to be dropped; signs are the top bits of `signed_like`.
template <int kBits, int kShift>
class PackedSlots {
 public:
  static constexpr int kDwords = kBits;         // vectors of dwords a block
  static constexpr int kSlots = 32 / kBits;     // a dword
  SLIMGRAD_INLINE void put(Words magnitude, Words signed_like) {
    constexpr uint32_t ones = (1u << (kBits - 1)) - 1;
    dword_ = masked_or(moved<kShift, 32 - kBits>(magnitude), all_words(ones << (32 - kBits)),
                       dword_ >> kBits);
    dword_ = masked_or(signed_like, all_words(0x80000000u), dword_);
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
template <int kShift>
class PackedSlots<3, kShift> {
 public:
  static constexpr int kDwords = 2;
  static constexpr int kSlots = 16;
  SLIMGRAD_INLINE void put(Words magnitude, Words signed_like) {
    const Words top = moved<kShift, 30>(magnitude) & all_words(0xC0000000u);
    magnitudes_ = top | (magnitudes_ >> 2);
    signs_ = masked_or(signed_like & (top | (top << 1)), all_words(0x80000000u), signs_ >> 1);
  }
  SLIMGRAD_INLINE void store_dword(uint8_t* out, int dword) {
    store(out + dword * 64, magnitudes_);
    if (dword == 1) store(out + 128, signs_);
  }

 private:
  Words magnitudes_{}, signs_{};
};

// Rounds and packs a block with one norm, and adds the components at `ahead` to the norm of a later
// bucket: one keeps the memory busy, the other the arithmetic units.
template <int kBits, typename GridType, typename NormType>
class FusedBlock {
 public:
  SLIMGRAD_INLINE FusedBlock(const float* x, const GridType& grid, const Fraction& fraction,
                             const RandomWords& random, const float* ahead, NormType& norm)
      : x_(x), grid_(grid), fraction_(fraction), random_(random), ahead_(ahead), norm_(norm) {}
  SLIMGRAD_INLINE void run(uint8_t* out) {
    Packed packed;
    for (int dword = 0; dword < Packed::kDwords; ++dword) {
      const int first = dword * Packed::kSlots * 16;
#pragma GCC unroll 2
      for (int i = first; i < first + Packed::kSlots * 16; i += 64) {
        pair<0>(packed, i);
        pair<1>(packed, i + 32);
      }
      packed.store_dword(out, dword);
    }
  }

 private:
  using Packed = PackedSlots<kBits, GridType::kShift>;

  template <int kHalf>
  SLIMGRAD_INLINE void pair(Packed& packed, int i) {
    prefetch(ahead_, i + kPrefetch);
    prefetch(ahead_, i + kPrefetch + 16);
    norm_.template add<kHalf>(load_floats(ahead_ + i), load_floats(ahead_ + i + 16));
    const Words random = random_.next();
    put<0>(packed, as_words(load_floats(x_ + i)), random);
    put<1>(packed, as_words(load_floats(x_ + i + 16)), random);
  }
  template <int kHalf>
  SLIMGRAD_INLINE void put(Packed& packed, Words component, Words random) {
    const Words rounded = grid_.template round<kHalf>(fraction_(component), random);
    packed.put(GridType::magnitude(rounded), GridType::signed_like(rounded, component));
  }

  const float* x_;
  const GridType& grid_;
  const SharedFraction fraction_;
  RandomWords random_;
  const float* ahead_;
  NormType& norm_;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

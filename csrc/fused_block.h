// One block of a bucket of whole blocks rounded and packed in registers, for widths worth code of
// their own: 2, 3, 4 and 8 bits.
#pragma once
#include "packed_slots.h"
#include "quantize_block.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kPrefetch = 8192;  // components ahead of the norms

constexpr bool has_fused_block(int bits) {
  return bits == 2 || bits == 3 || bits == 4 || bits == 8;
}

// Rounds and packs a block with one norm, and adds the components at `ahead` to the norm of a later
// bucket: one keeps the memory busy, the other the arithmetic units.
template <int kBits, typename GridType, typename NormType>
class FusedBlock {
 public:
  SLIMGRAD_INLINE FusedBlock(const float* x, const GridType& grid, const Fraction& fraction,
                             RandomWords& random, const float* ahead, NormType& norm)
      : x_(x), grid_(grid), fraction_(fraction), random_(random), ahead_(ahead), norm_(norm) {}
  SLIMGRAD_INLINE void run(uint8_t* out) {
    Packed packed;
    for (int dword = 0; dword < Packed::kDwords; ++dword) {
      slots(packed, dword * Packed::kSlots * 16, Pairs());
      packed.store_dword(out, dword);
    }
  }

 private:
  using Packed = PackedSlots<kBits, GridType>;
  using Pairs = std::make_integer_sequence<int, Packed::kSlots / 2>;

  template <int... kPair>
  SLIMGRAD_INLINE void slots(Packed& packed, int first, std::integer_sequence<int, kPair...>) {
    (pair<kPair>(packed, first + kPair * 32), ...);
  }
  template <int kPair>
  SLIMGRAD_INLINE void pair(Packed& packed, int i) {
    prefetch(ahead_, i + kPrefetch);
    prefetch(ahead_, i + kPrefetch + 16);
    norm_.template add<kPair % 2>(load_floats(ahead_ + i), load_floats(ahead_ + i + 16));
    const Words random = random_.next();
    put<kPair * 2>(packed, as_words(load_floats(x_ + i)), random);
    put<kPair * 2 + 1>(packed, as_words(load_floats(x_ + i + 16)), random);
  }
  template <int kSlot>
  SLIMGRAD_INLINE void put(Packed& packed, Words component, Words random) {
    const Floats fraction =
        GridType::kTakesSigns ? fraction_.with_sign(component) : fraction_(component);
    packed.template put<kSlot>(grid_.template round<kSlot % 2>(fraction, random), component);
  }

  const float* x_;
  const GridType& grid_;
  const SharedFraction fraction_;
  RandomWords& random_;
  const float* ahead_;
  NormType& norm_;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

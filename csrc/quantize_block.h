// One block rounded and packed: any width, grid and bucket size by way of a buffer of symbols, and
// without it for 4 bits in buckets of whole blocks, the setting worth code of its own.
#pragma once
#include "fraction.h"
#include "rounding.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kPrefetch = 8192;  // components ahead of the norms

SLIMGRAD_INLINE RandomWords random_words(const QuantizeArgs& args, int64_t first) {
  return RandomWords(chunk_keys(args.key, first / kChunk), first % kChunk);
}

// Symbols of a whole block, one a dword; a magnitude of zero has no sign.
template <typename GridType>
SLIMGRAD_INLINE void round_block(const float* x, const GridType& grid,
                                 const SpreadFraction& fraction, RandomWords random, int bits,
                                 uint32_t* symbols) {
  const Words ones = all_words((1u << (bits - 1)) - 1), sign = all_words(1u << (bits - 1));
  const auto put = [&](Words rounded, Words component, int i) {
    const Words magnitude = (rounded >> GridType::kShift) & ones;
    const Words symbol = masked_or(component >> (32 - bits), sign, magnitude);
    store(symbols + i, select(nonzero(magnitude), symbol, Words{}));
  };
  for (int i = 0; i < kBlock; i += 32) {
    const Words words = random.next();
    const Words a = as_words(load_floats(x + i)), b = as_words(load_floats(x + i + 16));
    put(grid.template round<0>(fraction(a, i), words), a, i);
    put(grid.template round<1>(fraction(b, i + 16), words), b, i + 16);
  }
}

// The block that begins at component `first`, whose norms are known.
template <typename GridType>
__attribute__((noinline)) void quantize_any_block(const QuantizeArgs& args, const GridType& grid,
                                                  int64_t first) {
  alignas(64) float padded[kBlock];
  alignas(64) uint32_t symbols[kBlock];
  const float* x = args.vector + first;
  uint8_t* out = args.packed + first / kBlock * block_bytes(args.bits);
  const int count = args.n - first < kBlock ? static_cast<int>(args.n - first) : kBlock;
  if (count < kBlock) {
    __builtin_memset(padded, 0, sizeof padded);
    __builtin_memcpy(padded, x, static_cast<size_t>(count) * sizeof(float));
    x = padded;
  }
  const SpreadFraction fraction(args, first);
  round_block(x, grid, fraction, random_words(args, first), args.bits, symbols);
  if (count == kBlock)
    pack_block(symbols, args.bits, out);
  else
    pack_bit_string(symbols, count, args.bits, out);
}

// Eight vectors of 4-bit symbols in one vector of dwords. A symbol enters at the top of its dword
// and sinks as others follow, which takes the same few constants for every one. Magnitudes arrive
// Shift bits up, above bits to be dropped; signs are those of the components.
template <int Shift>
class Nibbles {
 public:
  SLIMGRAD_INLINE void put(Words magnitude, Words component) {
    dword_ = masked_or(moved<Shift, 28>(magnitude), all_words(0x70000000u), dword_ >> 4);
    dword_ = masked_or(component, all_words(0x80000000u), dword_);
  }
  // Adding all ones to a magnitude carries into its sign bit unless the magnitude is zero.
  SLIMGRAD_INLINE Words without_negative_zeros() const {
    const Words magnitudes = all_words(0x77777777u);
    return dword_ & (((dword_ & magnitudes) + magnitudes) | magnitudes);
  }

 private:
  Words dword_{};
};

// Rounds and packs a block of 4-bit symbols with one norm, and adds the components at `ahead` to
// the norm of a later bucket: one keeps the memory busy, the other the arithmetic units.
template <typename GridType, typename NormType>
class FusedBlock {
 public:
  SLIMGRAD_INLINE FusedBlock(const float* x, const GridType& grid, const Fraction& fraction,
                             const RandomWords& random, const float* ahead, NormType& norm)
      : x_(x), grid_(grid), fraction_(fraction), random_(random), ahead_(ahead), norm_(norm) {}
  SLIMGRAD_INLINE void run(uint8_t* out) {
    for (int part = 0; part < 4; ++part) {
      Nibbles<GridType::kShift> nibbles;
      pair<0>(nibbles, part * 128);
      pair<1>(nibbles, part * 128 + 32);
      pair<0>(nibbles, part * 128 + 64);
      pair<1>(nibbles, part * 128 + 96);
      store(out + part * 64, nibbles.without_negative_zeros());
    }
  }

 private:
  template <int kHalf>
  SLIMGRAD_INLINE void pair(Nibbles<GridType::kShift>& nibbles, int i) {
    prefetch(ahead_, i + kPrefetch);
    prefetch(ahead_, i + kPrefetch + 16);
    norm_.template add<kHalf>(load_floats(ahead_ + i), load_floats(ahead_ + i + 16));
    const Words random = random_.next();
    const Words a = as_words(load_floats(x_ + i)), b = as_words(load_floats(x_ + i + 16));
    nibbles.put(grid_.template round<0>(fraction_(a), random), a);
    nibbles.put(grid_.template round<1>(fraction_(b), random), b);
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

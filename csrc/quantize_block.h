// One block rounded and packed by way of a buffer of symbols: any width, grid and bucket size.
#pragma once
#include "fraction.h"
#include "rounding.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Symbols of a whole block, one a dword; a magnitude of zero has no sign.
template <typename GridType>
SLIMGRAD_INLINE void round_block(const float* x, const GridType& grid,
                                 const SpreadFraction& fraction, RandomWords random, int bits,
                                 uint32_t* symbols) {
  const Words ones = all_words((1u << (bits - 1)) - 1), sign = all_words(1u << (bits - 1));
  const auto put = [&](Words rounded, Words component, int i) {
    const Words magnitude = (GridType::magnitude(rounded) >> GridType::kShift) & ones;
    const Words symbol =
        masked_or(GridType::signed_like(rounded, component) >> (32 - bits), sign, magnitude);
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
  const SpreadFraction fraction(args, first, GridType::prepared);
  round_block(x, grid, fraction, RandomWords(args.key, first), args.bits, symbols);
  if (count == kBlock)
    pack_block(symbols, args.bits, out);
  else
    pack_bit_string(symbols, count, args.bits, out);
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

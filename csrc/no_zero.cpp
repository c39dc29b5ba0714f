// Stochastic rounding to levels without zero: between minus and plus the smallest the sign is drawn.
#include "buckets.h"
#include "quantize_block.h"
#include "tiles.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Symbols of a whole block, one a dword. A grid index of 0 is minus the smallest level, j that of
// magnitude j - 1. Symbols are 0 where the scale is zero or not a number.
template <typename GridType>
void round_without_zero(const float* x, const GridType& grid, const SpreadFraction& fraction,
                        RandomWords random, int bits, uint32_t* symbols) {
  const Words sign = all_words(1u << (bits - 1)), one = all_words(1);
  const auto put = [&](Words index, Words component, int i) {
    const auto up = nonzero(index);
    const Words magnitude = index - select(up, one, Words{});
    const Words flip = select(up, Words{}, sign);
    const Words symbol = masked_or(component >> (32 - bits), sign, magnitude) ^ flip;
    store(symbols + i, select(nonzero(fraction.kept(i)), symbol, Words{}));
  };
  for (int i = 0; i < kBlock; i += 32) {
    const Words words = random.next();
    const Words a = as_words(load_floats(x + i)), b = as_words(load_floats(x + i + 16));
    put(grid.template round<0>(fraction(a, i), words), a, i);
    put(grid.template round<1>(fraction(b, i + 16), words), b, i + 16);
  }
}

template <int Size>
void round_blocks(const QuantizeArgs& args, int64_t first, int64_t last) {
  const typename TableGrid<Size>::Memory memory(args);
  const TableGrid<Size> grid(memory);
  for (int64_t e = first; e < last; e += kBlock) {
    alignas(64) float padded[kBlock] = {};
    alignas(64) uint32_t symbols[kBlock];
    const int count = static_cast<int>(least(kBlock, args.n - e));
    const float* x = args.vector + e;
    if (count < kBlock) {
      __builtin_memcpy(padded, x, static_cast<size_t>(count) * sizeof(float));
      x = padded;
    }
    round_without_zero(x, grid, SpreadFraction(args, e, TableGrid<Size>::prepared),
                       RandomWords(args.key, e), args.bits, symbols);
    uint8_t* out = args.packed + e / kBlock * block_bytes(args.bits);
    if (count == kBlock)
      pack_block(symbols, args.bits, out);
    else
      pack_bit_string(symbols, count, args.bits, out);
  }
}

}  // namespace

void quantize_no_zero(const QuantizeArgs& args) {
  in_tiles(
      args.n, args.bucket_size, args.serial,
      [&](int64_t first, int64_t last) { take_norms(args, first, last); },
      [&](int64_t first, int64_t last) {
        if (args.bits <= 4)
          round_blocks<8>(args, first, last);
        else
          round_blocks<128>(args, first, last);
      });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

#include "symbol_counts.h"

#include "lane_layout.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kTables = 4;  // equal neighbours do not wait for one another

struct Tables {
  uint32_t of[kTables][256] = {};

  // Bytes of nibbles, in any order.
  void add_bytes(const uint8_t* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) ++of[i % kTables][from[i]];
  }
  void add_symbols(const uint32_t* from, int count) {
    for (int i = 0; i < count; ++i) ++of[i % kTables][from[i]];
  }
  int64_t of_value(int value) const {
    int64_t total = 0;
    for (const auto& table : of) total += table[value];
    return total;
  }
};

int64_t block_in_group(int64_t group, int64_t stride) { return group * stride + group * 7 % stride; }

}  // namespace

void symbol_counts(const CountArgs& args) {
  Tables tables, bytes;
  alignas(64) uint32_t symbols[kBlock];
  const int64_t size = block_bytes(args.bits), blocks = args.n / kBlock;
  int64_t counted = 0;
  for (int value = 0; value < 1 << args.bits; ++value) args.counts[value] = 0;
  const auto flush = [&] {
    for (int value = 0; value < 1 << args.bits; ++value) args.counts[value] += tables.of_value(value);
    if (args.bits == 4) {
      for (int value = 0; value < 256; ++value) {
        args.counts[value & 15] += bytes.of_value(value);
        args.counts[value >> 4] += bytes.of_value(value);
      }
    }
    tables = Tables();
    bytes = Tables();
  };
  for (int64_t group = 0; group * args.stride < blocks; ++group) {
    const int64_t block = block_in_group(group, args.stride);
    if (block >= blocks) break;
    if (args.bits == 4) {
      bytes.add_bytes(args.packed + block * size, size);
    } else {
      unpack_block(args.packed + block * size, args.bits, symbols);
      tables.add_symbols(symbols, kBlock);
    }
    counted += kBlock;
    if (counted > int64_t{1} << 31) {
      flush();
      counted = 0;
    }
  }
  const int rest = static_cast<int>(args.n % kBlock);
  if (rest > 0) {
    unpack_bit_string(args.packed + blocks * size, rest, args.bits, symbols);
    tables.add_symbols(symbols, rest);
  }
  flush();
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

#include "symbol_counts.h"

#include "lane_layout.h"
#include "rans.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kTables = 4;  // equal neighbours do not wait for one another

struct Tables {
  int64_t of[kTables][256] = {};

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

// Runs block(packed) on one whole block of every group of `stride`, then rest(packed, count) on the
// symbols behind the last block, if there are any.
template <typename Block, typename Rest>
void over_counted(const CountArgs& args, const Block& block, const Rest& rest) {
  const int64_t size = block_bytes(args.bits), blocks = args.n / kBlock;
  for (int64_t group = 0; group * args.stride < blocks; ++group) {
    const int64_t chosen = group * args.stride + group * 7 % args.stride;
    if (chosen < blocks) block(args.packed + chosen * size);
  }
  const int count = static_cast<int>(args.n % kBlock);
  if (count > 0) rest(args.packed + blocks * size, count);
}

}  // namespace

void symbol_counts(const CountArgs& args) {
  Tables tables, bytes;
  alignas(64) uint32_t symbols[kBlock];
  over_counted(
      args,
      [&](const uint8_t* block) {
        if (args.bits == 4) return bytes.add_bytes(block, block_bytes(4));
        unpack_block(block, args.bits, symbols);
        tables.add_symbols(symbols, kBlock);
      },
      [&](const uint8_t* rest, int count) {
        unpack_bit_string(rest, count, args.bits, symbols);
        tables.add_symbols(symbols, count);
      });
  for (int value = 0; value < 1 << args.bits; ++value) args.counts[value] = tables.of_value(value);
  if (args.bits != 4) return;
  for (int value = 0; value < 256; ++value) {
    args.counts[value & 15] += bytes.of_value(value);
    args.counts[value >> 4] += bytes.of_value(value);
  }
}

void context_counts(const CountArgs& args) {
  alignas(64) uint32_t symbols[kBlock];
  const int drop = dropped_bits(args.bits);
  __builtin_memset(args.counts, 0, sizeof(int64_t) << args.bits << (args.bits - drop));
  const auto add = [&](int count) {
    for (uint32_t e = 0, context = 0; e < static_cast<uint32_t>(count); ++e) {
      ++args.counts[context << args.bits | symbols[e]];
      context = symbols[e] >> drop;
    }
  };
  over_counted(
      args,
      [&](const uint8_t* block) {
        unpack_block(block, args.bits, symbols);
        add(kBlock);
      },
      [&](const uint8_t* rest, int count) {
        unpack_bit_string(rest, count, args.bits, symbols);
        add(count);
      });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Every symbol other than 0 as three things: the gap to the one before it, its sign, its level.
#include "elias.h"

#include <mutex>

#include "bit_stream.h"
#include "elias_words.h"
#include "lane_layout.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kShortGaps = 16;
constexpr int kWindow = 12;  // bits that the decoder looks up at once

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Sign and level of a symbol that is not 0. Magnitude 0, which then has the sign, is the last level.
CodeWord word_of_symbol(IntegerCode code, int bits, uint32_t symbol) {
  const uint32_t sign_bit = 1u << (bits - 1);
  const uint32_t magnitude = symbol & (sign_bit - 1);
  const CodeWord level = word_of(code, magnitude == 0 ? sign_bit : magnitude);
  return joined({symbol >> (bits - 1), 1}, level);
}

// Gap and symbol in one word of at most 23 bits, above its length in the lowest 6.
using ShortWord = uint32_t;
constexpr int kLengthBits = 6;

struct Encoder {
  const EliasArgs& args;
  BitWriter writer;
  ShortWord words[kShortGaps][256];  // 0, an empty word, for symbol 0

  explicit Encoder(const EliasArgs& a) : args(a), writer{a.out} {
    for (int gap = 1; gap < kShortGaps; ++gap) {
      words[gap][0] = 0;
      for (uint32_t s = 1; s < 1u << args.bits; ++s) {
        const CodeWord word = joined(word_of(args.code, gap), word_of_symbol(args.code, args.bits, s));
        words[gap][s] = static_cast<ShortWord>(word.bits << kLengthBits | word.length);
      }
    }
  }

  void put(BitWriter& to, CodeWord word) const {
    to.flush();
    to.append(word.bits, word.length);
    to.flush();
  }

  SLIMGRAD_INLINE int64_t put_symbol(BitWriter& to, uint32_t symbol, int64_t gap) const {
    if (__builtin_expect(gap >= kShortGaps, 0)) {
      if (symbol != 0) {
        put(to, word_of(args.code, gap));
        put(to, word_of_symbol(args.code, args.bits, symbol));
      }
    } else {
      const ShortWord word = words[gap][symbol];
      to.append(word >> kLengthBits, word & ((1 << kLengthBits) - 1));
    }
    // Zeros are frequent and scattered, so that a branch on them would be foreseen badly.
    const int64_t absent = symbol != 0 ? 0 : -1;
    return (gap & absent) + 1;
  }

  // `count` symbols and, where that is odd, one 0 behind them; the gap in front of the next.
  int64_t put_symbols(const uint32_t* from, int count, int64_t gap) {
    BitWriter local = writer;  // in registers: a byte that is written could be a member
    for (int i = 0; i < count; i += 2) {
      gap = put_symbol(local, from[i], gap);
      gap = put_symbol(local, from[i + 1], gap);
      local.flush();
    }
    writer = local;
    return gap - (count & 1);
  }
};

// What the bits of a window begin with; total 0 when they do not hold all of it.
struct Entry {
  uint8_t total, gap_length, gap, symbol;
};

struct Found {
  int64_t gap;  // 0 when the bits are no code words
  int gap_length, total;
  uint32_t symbol;
};

// The slow way, for any window. Without a symbol behind the gap `total` is 0.
Found found_at(IntegerCode code, int bits, uint64_t window) {
  const Number gap = number_at(code, window);
  Found found{static_cast<int64_t>(gap.value), gap.length, 0, 0};
  if (gap.value == 0) return found;
  window <<= gap.length;
  const uint32_t sign_bit = 1u << (bits - 1);
  const uint32_t sign = window >> 63 != 0 ? sign_bit : 0;
  const Number level = number_at(code, window << 1);
  if (level.value == 0 || level.value > sign_bit) return found;
  found.symbol = sign | (static_cast<uint32_t>(level.value) & (sign_bit - 1));
  if (found.symbol != 0) found.total = gap.length + 1 + level.length;
  return found;
}

using Table = Entry[1 << kWindow];

void fill(Table& table, IntegerCode code, int bits) {
  for (uint64_t i = 0; i < 1u << kWindow; ++i) {
    const Found found = found_at(code, bits, i << (64 - kWindow));
    const bool whole = found.total != 0 && found.total <= kWindow;
    table[i] = !whole ? Entry{}
                      : Entry{static_cast<uint8_t>(found.total),
                              static_cast<uint8_t>(found.gap_length),
                              static_cast<uint8_t>(found.gap), static_cast<uint8_t>(found.symbol)};
  }
}

const Table& table_of(IntegerCode code, int bits) {
  static Table tables[3][8];
  static std::once_flag filled[3][8];
  const int row = static_cast<int>(code), column = bits - 1;
  std::call_once(filled[row][column], [&] { fill(tables[row][column], code, bits); });
  return tables[row][column];
}

class Decoder {
 public:
  explicit Decoder(const EliasArgs& args)
      : args_(args), reader_{args.in, args.in_bytes}, table_(table_of(args.code, args.bits)) {}

  int64_t run() {
    for (int64_t first = 0; first < args_.n; first += kSegment)
      if (!segment(first, smaller(args_.n - first, kSegment))) return byte();
    return reader_.ends_at(at_) ? -1 : byte();
  }

 private:
  // Symbols [first, first + count); false where the bits at at_ do not belong there.
  bool segment(int64_t first, int64_t count) {
    block_ = 0;
    int64_t position = 0;  // of the last symbol found, counted from 1
    for (;;) {
      const uint64_t window = reader_.peek(at_);
      const Entry entry = table_[window >> (64 - kWindow)];
      Found found{entry.gap, entry.gap_length, entry.total, entry.symbol};
      if (__builtin_expect(entry.total == 0, 0)) {
        found = found_at(args_.code, args_.bits, window);
        if (found.gap == 0) return false;
      }
      position += found.gap;
      if (__builtin_expect(position > smaller(block_ + kBlock, count), 0)) {
        if (position > count) {
          at_ += found.gap_length;
          write_until(first, count, count);
          return position == count + 1 && within();
        }
        write_until(first, count, (position - 1) / kBlock * kBlock);
        if (!within()) return false;
      }
      if (__builtin_expect(found.total == 0, 0)) return false;
      symbols_[position - 1 - block_] = found.symbol;
      at_ += found.total;
    }
  }

  int64_t byte() const { return smaller(at_ >> 3, args_.in_bytes); }
  bool within() const { return at_ <= 8 * args_.in_bytes; }

  // Packs the blocks of a segment before `end`, the first with the symbols found.
  void write_until(int64_t first, int64_t count, int64_t end) {
    for (; block_ < end; block_ += kBlock) {
      uint8_t* to = args_.out + (first + block_) / kBlock * block_bytes(args_.bits);
      if (count - block_ >= kBlock)
        pack_block(symbols_, args_.bits, to);
      else
        pack_bit_string(symbols_, static_cast<int>(count - block_), args_.bits, to);
      __builtin_memset(symbols_, 0, sizeof symbols_);
    }
  }

  const EliasArgs& args_;
  BitReader reader_;
  const Table& table_;
  int64_t at_ = 0;     // bit
  int64_t block_ = 0;  // first symbol of the block that is being filled, in the segment
  alignas(64) uint32_t symbols_[kBlock] = {};
};

}  // namespace

int64_t elias_encode(const EliasArgs& args) {
  Encoder encoder(args);
  alignas(64) uint32_t symbols[kBlock];
  for (int64_t first = 0; first < args.n; first += kSegment) {
    const int64_t end = smaller(first + kSegment, args.n);
    int64_t gap = 1;
    for (int64_t e = first; e < end; e += kBlock) {
      const uint8_t* in = args.in + e / kBlock * block_bytes(args.bits);
      const int count = static_cast<int>(smaller(end - e, kBlock));
      if (count == kBlock)
        unpack_block(in, args.bits, symbols);
      else
        unpack_bit_string(in, count, args.bits, symbols);
      gap = encoder.put_symbols(symbols, count, gap);
    }
    encoder.put(encoder.writer, word_of(args.code, gap));
  }
  return encoder.writer.end() - args.out;
}

int64_t elias_decode(const EliasArgs& args) { return Decoder(args).run(); }

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

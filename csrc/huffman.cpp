// Counting units and writing their code words.
#include "huffman.h"

#include <memory>

#include "huffman_units.h"
#include "huffman_words.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace

void huffman_count(const HuffmanArgs& args, int64_t every, int64_t* counts) {
  const Units units(args);
  // Equal neighbours would wait for each other in one table.
  uint32_t tables[4][256] = {};
  uint8_t rows[kBlock];
  const auto add_tables = [&] {
    for (auto& table : tables)
      for (int u = 0; u < units.values(); ++u) counts[u] += table[u];
    __builtin_memset(tables, 0, sizeof tables);
  };
  int64_t counted = 0;
  for (int64_t first = 0; first < args.n; first += every * kBlock) {
    const int count = static_cast<int>(smaller(args.n - first, kBlock));
    rows_of_block(units, args.in + first / kBlock * block_bytes(args.bits), count, rows,
                  units.row());
    if (count == kBlock) {
      for (int u = 0; u < kBlock / units.symbols; u += 8) {
        uint64_t word;
        __builtin_memcpy(&word, rows + u, sizeof word);
        for (int k = 0; k < 8; ++k) ++tables[k % 4][word >> (8 * k) & 0xFF];
      }
    } else {
      for (int s = 0; s < kStreams; ++s)
        for (int64_t i = 0; i < units.in_stream(count, s); ++i)
          ++tables[0][rows[s * units.row() + i]];
    }
    if ((counted += count) >= int64_t{1} << 31) add_tables(), counted = 0;
  }
  add_tables();
}

int64_t huffman_encode(const HuffmanArgs& args, const uint8_t* lengths, int64_t head) {
  const Units units(args);
  const Codebook book(lengths, units.values());
  StreamWriter writer(book);
  const int64_t chunks = (args.n + kChunk - 1) / kChunk;
  uint8_t* sizes = args.out + head - chunks * 2 * kStreams;
  uint8_t* out = args.out + head;
  const int64_t stride = kChunk / kBlock * units.row();
  const std::unique_ptr<uint8_t[]> rows(new uint8_t[kStreams * stride]);
  for (int64_t first = 0; first < args.n; first += kChunk) {
    const int64_t last = smaller(first + kChunk, args.n);
    if (args.out + args.out_bytes - out < units.most_bytes(last - first) + 8) return kTooLong;
    for (int64_t e = first; e < last; e += kBlock)
      rows_of_block(units, args.in + e / kBlock * block_bytes(args.bits),
                    static_cast<int>(smaller(last - e, kBlock)),
                    rows.get() + (e - first) / kBlock * units.row(), stride);
    for (int s = 0; s < kStreams; ++s, sizes += 2) {
      uint8_t* end =
          writer.write(rows.get() + s * stride, units.in_stream(last - first, s), out);
      const int64_t size = end - out;
      sizes[0] = static_cast<uint8_t>(size);
      sizes[1] = static_cast<uint8_t>(size >> 8);
      out = end;
    }
  }
  return writer.missing() ? kNoWord : out - args.out;
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

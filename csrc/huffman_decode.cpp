// Code words back to symbols: eight streams side by side, one look-up a unit.
#include <memory>

#include "bit_stream.h"
#include "huffman.h"
#include "huffman_units.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kOverrun = kChunk / kStreams * kLongest / 8 + 8;  // bytes behind a bad stream

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// What every 12 bits begin with: the unit above the length of its word.
using Entry = uint16_t;

struct Table {
  Entry entries[1 << kLongest];
  bool alone = false;  // one unit; its word is 0 and nothing begins with 1

  // False when the lengths are not those of a full code, or of one unit.
  bool fill(const uint8_t* nibbles, int values) {
    int lengths[256], used = 0;
    for (int u = 0; u < values; ++u) {
      lengths[u] = nibbles[u / 2] >> (u % 2 * 4) & 15;
      if (lengths[u] > kLongest) return false;
      used += lengths[u] != 0;
    }
    int next = 0;
    for (int length = 1; length <= kLongest; ++length)
      for (int u = 0; u < values; ++u)
        if (lengths[u] == length) {
          const int width = 1 << (kLongest - length);
          if (next + width > 1 << kLongest) return false;
          for (int i = 0; i < width; ++i)
            entries[next + i] = static_cast<Entry>(u << 8 | length);
          next += width;
        }
    alone = used == 1 && next == 1 << (kLongest - 1);
    if (alone) __builtin_memcpy(entries + next, entries, sizeof entries / 2);
    return alone || next == 1 << kLongest;
  }
};

// Four units of each of four streams, step by step so that none waits for another. Four words take
// 48 bits at most; the lowest bit set in a window tells how many were shifted out.
template <int Row>
SLIMGRAD_INLINE void read_four(const Entry* entries, const uint8_t* data, int64_t* at, Entry* out) {
  uint64_t window[4];
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s)
    window[s] = load_big_endian(data + (at[s] >> 3)) << (at[s] & 7) | 1;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) {
      const uint32_t entry = entries[window[s] >> (64 - kLongest)];
      window[s] <<= entry & 63;  // the unit lies above
      out[s * Row + k] = static_cast<Entry>(entry);
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) at[s] += __builtin_ctzll(window[s]);
}

class Decoder {
 public:
  explicit Decoder(const HuffmanArgs& args) : args_(args), units_(args) {}

  int64_t run() {
    if (args_.n == 0) return args_.in_bytes == 0 ? -1 : 0;
    const int64_t table_bytes = (units_.values() + 1) / 2;
    const int64_t chunks = (args_.n + kChunk - 1) / kChunk;
    const int64_t head = table_bytes + chunks * 2 * kStreams;
    if (args_.in_bytes < head) return args_.in_bytes;
    if (!table_.fill(args_.in, units_.values())) return 0;
    const uint8_t* sizes = args_.in + table_bytes;
    int64_t start = head;
    for (int64_t first = 0; first < args_.n; first += kChunk, sizes += 2 * kStreams) {
      const int64_t count = smaller(args_.n - first, kChunk);
      int64_t bytes[kStreams], together = 0;
      for (int s = 0; s < kStreams; ++s) {
        bytes[s] = sizes[2 * s] | sizes[2 * s + 1] << 8;
        if (bytes[s] > units_.most_bytes(count, s)) return sizes + 2 * s - args_.in;
        together += bytes[s];
      }
      if (together > args_.in_bytes - start) return sizes - args_.in;
      if (!chunk(first, count, start, together, bytes)) return start;
      start += together;
    }
    return start == args_.in_bytes ? -1 : start;
  }

 private:
  // A word that is not where it should be can lead behind the end: there are zeros.
  bool chunk(int64_t first, int64_t count, int64_t start, int64_t together, const int64_t* bytes) {
    if (args_.in_bytes - start - together >= kOverrun)
      return streams(args_.in + start, first, count, bytes);
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[together + kOverrun]());
    __builtin_memcpy(copy.get(), args_.in + start, static_cast<size_t>(together));
    return streams(copy.get(), first, count, bytes);
  }

  bool streams(const uint8_t* data, int64_t first, int64_t count, const int64_t* bytes) {
    int64_t at[kStreams], end = 0;
    for (int s = 0; s < kStreams; ++s) at[s] = 8 * end, end += bytes[s];
    if (table_.alone)
      for (int64_t i = 0; i < end; ++i)
        if (data[i] != 0) return false;
    for (int64_t e = 0; e < count; e += kBlock)
      if (!block(data, first + e, static_cast<int>(smaller(count - e, kBlock)), at)) return false;
    for (int s = 0; s < kStreams; data += bytes[s], ++s) {
      const int64_t skipped = s == 0 ? 0 : bytes[s - 1];
      for (int r = s; r < kStreams; ++r) at[r] -= 8 * skipped;
      if (!BitReader{data, bytes[s]}.ends_at(at[s])) return false;
    }
    return true;
  }

  bool block(const uint8_t* data, int64_t first, int count, int64_t* at) {
    Entry entries[kBlock];
    if (count < kBlock)
      read_rest(data, count, at, entries);
    else if (units_.row() == kRow)
      read_rows<kRow>(data, at, entries);
    else
      read_rows<kRow / 2>(data, at, entries);
    uint8_t rows[kBlock];
    const int in_block = kStreams * units_.row();
    for (int i = 0; i < in_block; ++i) rows[i] = static_cast<uint8_t>(entries[i] >> 8);
    return block_of_rows(units_, rows, units_.row(), count,
                         args_.out + first / kBlock * block_bytes(args_.bits));
  }

  template <int Row>
  void read_rows(const uint8_t* data, int64_t* at, Entry* entries) const {
    for (int i = 0; i < Row; i += 4) {
      read_four<Row>(table_.entries, data, at, entries + i);
      read_four<Row>(table_.entries, data, at + 4, entries + 4 * Row + i);
    }
  }

  void read_rest(const uint8_t* data, int count, int64_t* at, Entry* entries) const {
    __builtin_memset(entries, 0, kBlock * sizeof(Entry));
    for (int s = 0; s < kStreams; ++s)
      for (int64_t i = 0; i < units_.in_stream(count, s); ++i) {
        const uint64_t window = load_big_endian(data + (at[s] >> 3)) << (at[s] & 7);
        const Entry entry = table_.entries[window >> (64 - kLongest)];
        entries[s * units_.row() + i] = entry;
        at[s] += entry & 0xFF;
      }
  }

  const HuffmanArgs& args_;
  Units units_;
  Table table_;
};

}  // namespace

int64_t huffman_decode(const HuffmanArgs& args) {
  const std::unique_ptr<Decoder> decoder(new Decoder(args));
  return decoder->run();
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

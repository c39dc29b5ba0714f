// Units, one symbol or two neighbours, in the order of the eight streams that take turns.
#pragma once
#include "huffman.h"
#include "lane_layout.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kStreams = 8;
constexpr int64_t kChunk = 65536;                // symbols whose streams stand together
constexpr int kLongest = 12;                     // bits of a word
constexpr int kRow = kBlock / kStreams;          // units of a block in one stream, at most
constexpr uint64_t kEvenNibbles = 0x0F0F0F0F0F0F0F0F;

// Lanes of 64 bits in a register.
typedef uint64_t Quads __attribute__((vector_size(kLeafBytes)));
constexpr int kQuads = kLeafBytes / 8;

// The nibbles of the lower half, one in the low half of every byte, and the reverse.
SLIMGRAD_INLINE Quads spread(Quads nibbles) {
  nibbles = (nibbles | nibbles << 16) & 0x0000FFFF0000FFFF;
  nibbles = (nibbles | nibbles << 8) & 0x00FF00FF00FF00FF;
  return (nibbles | nibbles << 4) & kEvenNibbles;
}
SLIMGRAD_INLINE Quads gathered(Quads bytes) {
  bytes = (bytes | bytes >> 4) & 0x00FF00FF00FF00FF;
  bytes = (bytes | bytes >> 8) & 0x0000FFFF0000FFFF;
  return (bytes | bytes >> 16) & 0xFFFFFFFF;
}

// How the symbols of a width are cut into units.
struct Units {
  int bits;
  int symbols;  // in a unit

  explicit Units(const HuffmanArgs& args) : bits(args.bits), symbols(args.pairs ? 2 : 1) {}
  int values() const { return 1 << (bits * symbols); }
  int row() const { return kRow / symbols; }
  bool nibble_pairs() const { return bits == 4 && symbols == 2; }
  // Units of stream `stream` among `count` symbols.
  int64_t in_stream(int64_t count, int stream) const {
    return ((count + symbols - 1) / symbols - stream + kStreams - 1) / kStreams;
  }
  // Bytes of that stream, and of all streams, at most.
  int64_t most_bytes(int64_t count, int stream) const {
    return (in_stream(count, stream) * kLongest + 7) / 8;
  }
  int64_t most_bytes(int64_t count) const {
    int64_t sum = 0;
    for (int s = 0; s < kStreams; ++s) sum += most_bytes(count, s);
    return sum;
  }
};

// Pairs of 4 bits in a whole block: a lane of 64 bits holds eight units of one stream.
SLIMGRAD_INLINE void rows_of_nibbles(const uint8_t* in, uint8_t* rows, int64_t stride) {
  for (int line = 0; line < 4; ++line) {
    alignas(64) uint64_t words[kStreams];
    for (int s = 0; s < kStreams; s += kQuads) {
      const Quads word = Lanes<Quads>::load(in + line * 64 + s * 8);
      Lanes<Quads>::store(words + s, spread(word & 0xFFFFFFFF) | spread(word >> 32) << 4);
    }
    for (int s = 0; s < kStreams; ++s)
      __builtin_memcpy(rows + s * stride + line * 8, &words[s], sizeof words[s]);
  }
}
SLIMGRAD_INLINE void nibbles_of_rows(const uint8_t* rows, int64_t stride, uint8_t* out) {
  for (int line = 0; line < 4; ++line) {
    alignas(64) uint64_t words[kStreams];
    for (int s = 0; s < kStreams; ++s)
      __builtin_memcpy(&words[s], rows + s * stride + line * 8, sizeof words[s]);
    for (int s = 0; s < kStreams; s += kQuads) {
      const Quads word = Lanes<Quads>::load(words + s);
      Lanes<Quads>::store(out + line * 64 + s * 8,
                          gathered(word & kEvenNibbles) | gathered(word >> 4 & kEvenNibbles) << 32);
    }
  }
}

// The units of `count` symbols, at most a block: those of stream s from rows + s * stride on. Behind
// the last symbol they are those of zeros.
inline void rows_of_block(const Units& units, const uint8_t* in, int count, uint8_t* rows,
                          int64_t stride) {
  if (units.nibble_pairs() && count == kBlock) return rows_of_nibbles(in, rows, stride);
  alignas(64) uint32_t symbols[kBlock];
  if (count == kBlock)
    unpack_block(in, units.bits, symbols);
  else
    unpack_bit_string(in, count, units.bits, symbols);
  for (int u = 0; u < kBlock / units.symbols; ++u) {
    const uint32_t unit = units.symbols == 1 ? symbols[u]
                                             : symbols[2 * u] | symbols[2 * u + 1] << units.bits;
    rows[u % kStreams * stride + u / kStreams] = static_cast<uint8_t>(unit);
  }
}

// The reverse; false when a unit holds more than the last symbol.
inline bool block_of_rows(const Units& units, const uint8_t* rows, int64_t stride, int count,
                          uint8_t* out) {
  if (units.nibble_pairs() && count == kBlock) {
    nibbles_of_rows(rows, stride, out);
    return true;
  }
  alignas(64) uint32_t symbols[kBlock];
  const uint32_t low = (1u << units.bits) - 1;
  for (int u = 0; u < kBlock / units.symbols; ++u) {
    const uint32_t unit = rows[u % kStreams * stride + u / kStreams];
    symbols[units.symbols * u] = unit & low;
    if (units.symbols == 2) symbols[2 * u + 1] = unit >> units.bits;
  }
  if (count == kBlock) {
    pack_block(symbols, units.bits, out);
    return true;
  }
  pack_bit_string(symbols, count, units.bits, out);
  return units.symbols == 1 || count % 2 == 0 || symbols[count] == 0;
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Prefix codes of at most 12 bits for symbols or pairs of them; see docs/wire-format.md.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct HuffmanArgs {
  int64_t n;          // symbols
  int bits;           // of a symbol, 1 to 8
  bool pairs;         // a unit is two neighbours, not one symbol; bits at most 4
  const uint8_t* in;  // packed symbols, or the payload
  int64_t in_bytes;
  uint8_t* out;       // the payload, or packed symbols
  int64_t out_bytes;
};
constexpr int64_t kNoWord = -1, kTooLong = -2;

// Adds to counts[u] how often unit u occurs in every `every`th block, from the first on.
SLIMGRAD_DECLARE(void huffman_count(const HuffmanArgs& args, int64_t every, int64_t* counts))
// Writes the streams behind the first `head` bytes of the payload, and their sizes into the last
// ones of these; lengths[u] are those of a full prefix code, 0 for units without a word. Bytes of the
// payload; kNoWord when such a unit occurs, kTooLong when `out` could be too short.
SLIMGRAD_DECLARE(int64_t huffman_encode(const HuffmanArgs& args, const uint8_t* lengths,
                                        int64_t head))
// -1, or the byte at which the payload is not what the encoder writes.
SLIMGRAD_DECLARE(int64_t huffman_decode(const HuffmanArgs& args))

}  // namespace slimgrad

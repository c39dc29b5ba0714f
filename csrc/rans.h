// Arguments of the entropy coders; states, words and their order are those of docs/wire-format.md.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

constexpr int kTotalBits = 12;             // frequencies add up to 2^12
constexpr int kStates = 128;               // of a chunk
constexpr int64_t kChunkSymbols = 1 << 18;
constexpr uint32_t kLeastState = 1u << 15;  // a state is from here to 2^31 - 1

struct CodeArgs {
  int64_t n;
  int bits;                     // 1 to 8
  // 2^bits for every context (one without contexts), adding up to 2^12 in each.
  const uint16_t* frequencies;
  bool serial;
};

struct EncodeArgs {
  CodeArgs code;
  const uint8_t* packed;
  uint8_t* out;     // kMargin, then `room` for each chunk
  int64_t room;     // on average over neighbours
  uint32_t* words;  // of every chunk: how many were written
  int64_t* places;  // of every chunk: scratch
};

constexpr int64_t kMargin = 2048;  // more than is written between two looks at the room left

struct DecodeArgs {
  CodeArgs code;
  const uint8_t* payload;
  const int64_t* places;  // of every chunk in the payload, and the end of the last
  uint8_t* packed;
  uint8_t* failed;  // of every chunk: set to 1 when it is no encoder's; the first of them always is
};

// Bytes of chunks at the end of `out`; -1 when the room does not do.
SLIMGRAD_DECLARE(int64_t rans_encode(const EncodeArgs& args))
SLIMGRAD_DECLARE(void rans_decode(const DecodeArgs& args))
// The same with the symbol before as the context.
SLIMGRAD_DECLARE(int64_t context_encode(const EncodeArgs& args))
SLIMGRAD_DECLARE(void context_decode(const DecodeArgs& args))

// The context that a symbol is for the next one: its four highest bits.
constexpr int dropped_bits(int bits) { return bits > 4 ? bits - 4 : 0; }
constexpr int context_count(int bits) { return 1 << (bits - dropped_bits(bits)); }

}  // namespace slimgrad

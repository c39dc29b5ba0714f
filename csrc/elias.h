// Run-length coding of symbols in the universal codes of Elias; see docs/wire-format.md.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

enum class IntegerCode { gamma = 0, delta = 1, omega = 2 };

struct EliasArgs {
  IntegerCode code;
  int bits;            // of a symbol, 1 to 8
  int64_t n;           // symbols
  const uint8_t* in;   // packed symbols, or the payload
  int64_t in_bytes;
  uint8_t* out;        // the payload, with 8 bytes to spare, or packed symbols
};

// Bytes of the payload.
SLIMGRAD_DECLARE(int64_t elias_encode(const EliasArgs& args))
// -1, or the byte at which the payload is not what the encoder writes.
SLIMGRAD_DECLARE(int64_t elias_decode(const EliasArgs& args))

}  // namespace slimgrad

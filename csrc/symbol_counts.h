// How often every symbol occurs.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct CountArgs {
  const uint8_t* packed;
  int64_t n;
  int bits;        // 1 to 8
  int64_t stride;  // one block of so many is counted, see docs of slimgrad.kernels.symbol_counts
  int64_t* counts; // 2^bits, or so many for each context
};

SLIMGRAD_DECLARE(void symbol_counts(const CountArgs& args))
// Counts symbols behind each context, as in rans.h, into rows of 2^bits.
SLIMGRAD_DECLARE(void context_counts(const CountArgs& args))

}  // namespace slimgrad

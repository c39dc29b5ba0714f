// Arguments of the kernels that pack and unpack symbols, one a byte; the layout is that of
// docs/wire-format.md.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct PackArgs {
  const uint8_t* symbols;  // below 2^bits
  int64_t n;
  int bits;  // 1 to 8
  bool serial;
  uint8_t* packed;
};

struct UnpackArgs {
  const uint8_t* packed;
  int64_t n;
  int bits;  // 1 to 8
  bool serial;
  uint8_t* symbols;
};

SLIMGRAD_DECLARE(void pack_symbols(const PackArgs& args))
SLIMGRAD_DECLARE(void unpack_symbols(const UnpackArgs& args))

}  // namespace slimgrad

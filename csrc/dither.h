// Arguments of the decoder of dithered symbols; every rounding is that of docs/wire-format.md.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct UnditherArgs {
  const uint8_t* packed;
  const float* steps;
  int64_t n;
  int64_t bucket_size;
  int bits;  // 2 to 8
  uint64_t key;
  bool add;  // out += alpha * value instead of out = value
  float alpha;
  bool serial;
  float* out;
};

SLIMGRAD_DECLARE(void undither(const UnditherArgs& args))

#if defined(SLIMGRAD_ISA)
namespace SLIMGRAD_ISA {
// Components [first, last) on this thread; first is a multiple of 512, and last is one or n.
void undither_part(const UnditherArgs& args, int64_t first, int64_t last);
}  // namespace SLIMGRAD_ISA
#endif

}  // namespace slimgrad

// Arguments of the kernels that rotate blocks of 512 components; the layout and every rounding are
// those of docs/wire-format.md.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

struct RotateQuantizeArgs {
  const float* vector;
  int64_t n;
  const float* levels;   // 2^(bits-1), ascending to 1
  const int32_t* cells;  // 16; see the reference
  int bits;              // 1 to 4
  float spread;          // over (sum x^2)^2; see the reference
  uint64_t key;
  bool serial;
  float* scales;
  uint8_t* packed;
};

struct RotateDequantizeArgs {
  const uint8_t* packed;
  const float* scales;
  int64_t n;
  const float* values;  // 2^bits, the signed level of every symbol
  int bits;
  uint64_t key;
  bool add;  // out += alpha * value instead of out = value
  float alpha;
  bool serial;
  float* out;
};

SLIMGRAD_DECLARE(void rotate_quantize(const RotateQuantizeArgs& args))
SLIMGRAD_DECLARE(void rotate_dequantize(const RotateDequantizeArgs& args))

#if defined(SLIMGRAD_ISA)
namespace SLIMGRAD_ISA {
// Components [first, last) on this thread; first is a multiple of 512, and last is one or n.
void rotate_dequantize_part(const RotateDequantizeArgs& args, int64_t first, int64_t last);
}  // namespace SLIMGRAD_ISA
#endif

}  // namespace slimgrad

// Arguments of the quantize and dequantize kernels; the layout and every rounding are those of
// docs/wire-format.md.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

enum class Grid { uniform = 1, exponential = 2, table = 3, integer = 5 };
// step goes with integers and nothing else
enum class Norm { l2 = 1, linf = 2, step = 3, power_of_two = 4, mean = 5, unit = 7 };

struct QuantizeArgs {
  const float* vector;
  int64_t n;
  int64_t bucket_size;
  const float* levels;  // magnitudes + 1 values from 0 to 1; unused for integers
  int magnitudes;       // at most 2^(bits-1) - 1
  int bits;             // 2 to 8
  Grid grid;
  Norm norm;
  double step_rms;  // of integers: the least step over the root mean square of the bucket
  uint64_t key;
  bool serial;
  float* scales;
  uint8_t* packed;
};

struct DequantizeArgs {
  const uint8_t* packed;
  const float* scales;
  int64_t n;
  int64_t bucket_size;
  const float* values;  // 2^bits, the signed level of every symbol
  int bits;
  bool add;     // out += alpha * value instead of out = value
  float alpha;
  bool serial;
  float* out;
};

SLIMGRAD_DECLARE(void quantize(const QuantizeArgs& args))
SLIMGRAD_DECLARE(void dequantize(const DequantizeArgs& args))

#if defined(SLIMGRAD_ISA)
namespace SLIMGRAD_ISA {
// Components [first, last) on this thread; first is a multiple of 512, and last is one or n.
void dequantize_part(const DequantizeArgs& args, int64_t first, int64_t last);
}  // namespace SLIMGRAD_ISA
#endif

}  // namespace slimgrad

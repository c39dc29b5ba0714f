// Signs as symbols of one bit.
#include "buckets.h"
#include "tiles.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Whether symbols of this bucket say anything: its scale is neither zero nor NaN.
bool speaks(const BucketArgs& args, int64_t component) {
  return args.scales[component / args.bucket_size] > 0.0f;
}

// Thirty-two rows of sixteen; a sign enters at the top of its dword and sinks as others follow.
void pack_signs(const float* x, uint8_t* out) {
  const Words top = all_words(0x80000000u);
  Words dword{};
  for (int i = 0; i < kBlock; i += 16)
    dword = masked_or(as_words(load_floats(x + i)), top, dword >> 1);
  store(out, dword);
}

void pack_block_of_signs(const BucketArgs& args, int64_t first) {
  const int64_t last = least(first + kBlock, args.n);
  uint8_t* out = args.packed + first / 8;
  const bool one_bucket = first / args.bucket_size == (last - 1) / args.bucket_size;
  if (one_bucket && last - first == kBlock && speaks(args, first))
    return pack_signs(args.vector + first, out);
  alignas(64) uint32_t symbols[kBlock];
  const int count = static_cast<int>(last - first);
  for (int i = 0; i < count; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, args.vector + first + i, 4);
    symbols[i] = speaks(args, first + i) ? bits >> 31 : 0;
  }
  if (count == kBlock)
    pack_block(symbols, 1, out);
  else
    pack_bit_string(symbols, count, 1, out);
}

}  // namespace

void quantize_signs(const BucketArgs& args) {
  in_tiles(
      args.n, args.bucket_size, args.serial,
      [&](int64_t first, int64_t last) { take_norms(args, first, last); },
      [&](int64_t first, int64_t last) {
        for (int64_t e = first; e < last; e += kBlock) pack_block_of_signs(args, e);
      });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

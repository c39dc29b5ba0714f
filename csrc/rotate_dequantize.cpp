// Symbols of rotated blocks back to components, written or added to what is there.
#include "parallel.h"
#include "rotation.h"
#include "unrotate.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kGrain = 128;            // blocks
constexpr int64_t kStreamed = 1 << 20;  // components, at least, that leave the caches

template <typename Sink>
SLIMGRAD_INLINE void dequantize_block(const RotateDequantizeArgs& args, const Lookup<16>& values,
                                      int64_t block, float* out, const Sink& sink) {
  const float scale = args.scales[block];
  unrotate_block(args.packed + block * block_bytes(args.bits), args.bits, values,
                 BlockSigns(args.key, block), rotated_twice(scale), scale, out, sink);
}

template <typename Sink>
void dequantize_blocks(const RotateDequantizeArgs& args, const Sink& sink, int64_t first,
                       int64_t last) {
  float padded[16] = {};
  __builtin_memcpy(padded, args.values, sizeof(float) << args.bits);
  const Lookup<16> values(padded);
  for (int64_t block = first; block < last; ++block) {
    float* out = args.out + block * kBlock;
    const int64_t left = args.n - block * kBlock;
    if (left >= kBlock) {
      dequantize_block(args, values, block, out, sink);
    } else {
      alignas(64) float whole[kBlock];
      __builtin_memset(whole, 0, sizeof whole);
      __builtin_memcpy(whole, out, static_cast<size_t>(left) * sizeof(float));
      dequantize_block(args, values, block, whole, sink);
      __builtin_memcpy(out, whole, static_cast<size_t>(left) * sizeof(float));
    }
  }
}

}  // namespace

void rotate_dequantize_part(const RotateDequantizeArgs& args, int64_t first, int64_t last) {
  const IeeeArithmetic arithmetic;
  if (!args.add && args.n >= kStreamed && reinterpret_cast<uintptr_t>(args.out) % 64 == 0) {
    const int64_t whole = last / kBlock;
    dequantize_blocks(args, Stream{}, first / kBlock, whole);
    end_stream();
    return dequantize_blocks(args, Write{}, whole, (last + kBlock - 1) / kBlock);
  }
  with_sink(args.add, args.alpha, [&](const auto& sink) {
    dequantize_blocks(args, sink, first / kBlock, (last + kBlock - 1) / kBlock);
  });
}

void rotate_dequantize(const RotateDequantizeArgs& args) {
  const int64_t blocks = (args.n + kBlock - 1) / kBlock;
  parallel_ranges(0, blocks, kGrain, args.serial, [&](int64_t begin, int64_t end) {
    rotate_dequantize_part(args, begin * kBlock, end * kBlock < args.n ? end * kBlock : args.n);
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

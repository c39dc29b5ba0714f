// Symbols back to components, written or added to what is there: any width and bucket size by way
// of a buffer, and without it for 4 and 8 bits in buckets of whole blocks.
#include "bucket_norm.h"
#include "level_values.h"
#include "parallel.h"
#include "quantize.h"
#include "sinks.h"
#include "spread.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kGrain = 65536;
constexpr int64_t kPrefetch = 4096;  // components of `out` ahead

template <typename Values>
void dequantize_any_block(const DequantizeArgs& args, const Values& values, int64_t first) {
  alignas(64) uint32_t symbols[kBlock];
  alignas(64) float value[kBlock];
  const uint8_t* in = args.packed + first / kBlock * block_bytes(args.bits);
  const int count = args.n - first < kBlock ? static_cast<int>(args.n - first) : kBlock;
  if (count == kBlock)
    unpack_block(in, args.bits, symbols);
  else
    unpack_bit_string(in, count, args.bits, symbols);
  spread_scales(args.scales, args.bucket_size, first, count, value);
  for (int i = 0; i < kBlock; i += 16)
    store(value + i, load_floats(value + i) * values[load_words(symbols + i)]);
  write_or_add(value, count, args.add, args.alpha, args.out + first);
}

template <typename Values>
void dequantize_blocks(const DequantizeArgs& args, const Values& values, int64_t first,
                       int64_t last) {
  for (int64_t e = first; e < last; e += kBlock) dequantize_any_block(args, values, e);
}

// Widths of one plane, buckets of whole blocks.
template <int kBits, typename Values, typename Sink>
void dequantize_plane(const DequantizeArgs& args, const Values& values, const Sink& sink,
                      int64_t first, int64_t last) {
  constexpr int slots = 32 / kBits;
  for (int64_t e = first; e < last; e += kBlock) {
    if (last - e < kBlock) return dequantize_blocks(args, values, e, last);
    const Floats scale = all_floats(args.scales[e / args.bucket_size]);
    const uint8_t* in = args.packed + e / kBlock * block_bytes(kBits);
    for (int dword = 0; dword < kBits; ++dword) {
      const Words symbols = load_words(in + dword * 64);
      float* out = args.out + e + dword * slots * 16;
#pragma GCC unroll 8
      for (int slot = 0; slot < slots; ++slot) {
        if constexpr (Sink::kReads) prefetch_to_write(out, slot * 16 + kPrefetch);
        sink(out + slot * 16, scale * values[symbols >> (slot * kBits)]);
      }
    }
  }
}

template <int kBits, typename Values>
void dequantize_range(const DequantizeArgs& args, const Values& values, int64_t first,
                      int64_t last) {
  if (args.bits != kBits || args.bucket_size % kBlock != 0)
    return dequantize_blocks(args, values, first, last);
  with_sink(args.add, args.alpha, [&](const auto& sink) {
    dequantize_plane<kBits>(args, values, sink, first, last);
  });
}

// Symbols of at most 4 bits.
void dequantize_narrow(const DequantizeArgs& args, int64_t first, int64_t last) {
  float padded[16] = {};
  __builtin_memcpy(padded, args.values, sizeof(float) << args.bits);
  dequantize_range<4>(args, Lookup<16>(padded), first, last);
}

// Symbols of 5 to 8 bits.
void dequantize_wide(const DequantizeArgs& args, int64_t first, int64_t last) {
  const UniformValues uniform(args.bits);
  if (gives(uniform, args.values, args.bits))
    return dequantize_range<8>(args, uniform, first, last);
  const ExponentialValues exponential(args.bits);
  if (gives(exponential, args.values, args.bits))
    return dequantize_range<8>(args, exponential, first, last);
  float padded[256] = {};
  __builtin_memcpy(padded, args.values, sizeof(float) << args.bits);
  dequantize_blocks(args, Lookup<256>(padded), first, last);
}

}  // namespace

void dequantize_part(const DequantizeArgs& args, int64_t first, int64_t last) {
  const IeeeArithmetic arithmetic;
  if (args.bits <= 4)
    dequantize_narrow(args, first, last);
  else
    dequantize_wide(args, first, last);
}

void dequantize(const DequantizeArgs& args) {
  const int64_t blocks = (args.n + kBlock - 1) / kBlock;
  parallel_ranges(0, blocks, kGrain / kBlock, args.serial, [&](int64_t begin, int64_t end) {
    dequantize_part(args, begin * kBlock, end * kBlock < args.n ? end * kBlock : args.n);
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

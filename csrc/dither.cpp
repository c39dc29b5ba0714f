// Dithered symbols back to components, step (k - u), written or added to what is there: any width
// and bucket size by way of buffers, with fewer of them in buckets of whole blocks.
#include "dither.h"

#include <cfloat>

#include "parallel.h"
#include "random_words.h"
#include "sinks.h"
#include "spread.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kGrain = 65536;
constexpr int64_t kPrefetch = 4096;        // components of `out` ahead
constexpr float kHugeStep = 0x1p120f;      // times 128, the most k - u can be, still finite
constexpr float kUnitDither = 1.0f / 65536;

// Sixteen random bits of a vector of components, from the low or the high half of the words.
template <int kHalf>
SLIMGRAD_INLINE Words half_of(Words words) {
  return kHalf == 0 ? words & all_words(0xFFFF) : words >> 16;
}

// k - u with u = (r + 1/2) / 2^16 - 1/2: every step is exact.
SLIMGRAD_INLINE Floats undithered(Words symbol, Words r, int bits) {
  const Words sign = Words{} - (symbol >> (bits - 1));
  const Words k = (((symbol & all_words((1u << (bits - 1)) - 1)) ^ sign) - sign) << 17;
  return to_floats(k - (r << 1) + all_words(65535)) * all_floats(kUnitDither / 2);
}

SLIMGRAD_INLINE Floats finite(Floats value) {
  const Floats most = all_floats(FLT_MAX), least = all_floats(-FLT_MAX);
  value = select(less(most, value), most, value);
  return select(less(value, least), least, value);
}

__attribute__((noinline)) void undither_any_block(const UnditherArgs& args, int64_t first) {
  alignas(64) uint32_t symbols[kBlock];
  alignas(64) float value[kBlock];
  const uint8_t* in = args.packed + first / kBlock * block_bytes(args.bits);
  const int count = args.n - first < kBlock ? static_cast<int>(args.n - first) : kBlock;
  if (count == kBlock)
    unpack_block(in, args.bits, symbols);
  else
    unpack_bit_string(in, count, args.bits, symbols);
  spread_scales(args.steps, args.bucket_size, first, count, value);
  RandomWords random(args.key, first);
  for (int i = 0; i < kBlock; i += 32) {
    const Words words = random.next();
    const auto put = [&](int at, Words r) {
      const Floats exact = undithered(load_words(symbols + at), r, args.bits);
      store(value + at, finite(load_floats(value + at) * exact));
    };
    put(i, half_of<0>(words));
    put(i + 16, half_of<1>(words));
  }
  write_or_add(value, count, args.add, args.alpha, args.out + first);
}

// k + 3/2 - 2^-17 for the 4-bit symbol of k, from which 1 + r / 2^16 is to be taken.
struct ShiftedIntegers {
  float of[16];
  ShiftedIntegers() {
    for (int k = 0; k < 8; ++k) {
      of[k] = static_cast<float>(k) + 1.5f - kUnitDither / 2;
      of[k + 8] = static_cast<float>(-k) + 1.5f - kUnitDither / 2;
    }
  }
};

// 4 bits, buckets of whole blocks.
template <typename Sink>
void undither_nibbles(const UnditherArgs& args, const Sink& sink, int64_t first, int64_t last) {
  const ShiftedIntegers shifted;
  const Lookup<16> integers(shifted.of);
  const Words ones = all_words(0x7FFF80), one = all_words(0x3F800000);
  for (int64_t e = first; e < last; e += kBlock) {
    const float bucket_step = args.steps[e / args.bucket_size];
    if (last - e < kBlock || bucket_step > kHugeStep) {
      undither_any_block(args, e);
      continue;
    }
    const Floats step = all_floats(bucket_step);
    const uint8_t* in = args.packed + e / kBlock * block_bytes(4);
    RandomWords random(args.key, e);
    for (int part = 0; part < 4; ++part) {
      const Words nibbles = load_words(in + part * 64);
      float* out = args.out + e + part * 128;
#pragma GCC unroll 4
      for (int slot = 0; slot < 8; slot += 2) {
        if constexpr (Sink::kReads) {
          prefetch_to_write(out, slot * 16 + kPrefetch);
          prefetch_to_write(out, slot * 16 + 16 + kPrefetch);
        }
        const Words words = random.next();
        const Floats low = as_floats(masked_or(words << 7, ones, one));
        const Floats high = as_floats(masked_or(words >> 9, ones, one));
        sink(out + slot * 16, step * (integers[nibbles >> (slot * 4)] - low));
        sink(out + slot * 16 + 16, step * (integers[nibbles >> (slot * 4 + 4)] - high));
      }
    }
  }
}

// Other widths, buckets of whole blocks.
template <typename Sink>
void undither_symbols(const UnditherArgs& args, const Sink& sink, int64_t first, int64_t last) {
  alignas(64) uint32_t symbols[kBlock];
  for (int64_t e = first; e < last; e += kBlock) {
    const float bucket_step = args.steps[e / args.bucket_size];
    if (last - e < kBlock || bucket_step > kHugeStep) {
      undither_any_block(args, e);
      continue;
    }
    unpack_block(args.packed + e / kBlock * block_bytes(args.bits), args.bits, symbols);
    const Floats step = all_floats(bucket_step);
    float* out = args.out + e;
    RandomWords random(args.key, e);
#pragma GCC unroll 2
    for (int i = 0; i < kBlock; i += 32) {
      if constexpr (Sink::kReads) {
        prefetch_to_write(out, i + kPrefetch);
        prefetch_to_write(out, i + 16 + kPrefetch);
      }
      const Words words = random.next();
      const Words a = load_words(symbols + i), b = load_words(symbols + i + 16);
      sink(out + i, step * undithered(a, half_of<0>(words), args.bits));
      sink(out + i + 16, step * undithered(b, half_of<1>(words), args.bits));
    }
  }
}

}  // namespace

void undither_part(const UnditherArgs& args, int64_t first, int64_t last) {
  const IeeeArithmetic arithmetic;
  if (args.bucket_size % kBlock == 0)
    with_sink(args.add, args.alpha, [&](const auto& sink) {
      if (args.bits == 4)
        undither_nibbles(args, sink, first, last);
      else
        undither_symbols(args, sink, first, last);
    });
  else
    for (int64_t e = first; e < last; e += kBlock) undither_any_block(args, e);
}

void undither(const UnditherArgs& args) {
  const int64_t blocks = (args.n + kBlock - 1) / kBlock;
  parallel_ranges(0, blocks, kGrain / kBlock, args.serial, [&](int64_t begin, int64_t end) {
    undither_part(args, begin * kBlock, end * kBlock < args.n ? end * kBlock : args.n);
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

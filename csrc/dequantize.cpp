// Symbols back to components, written or added to what is there.
#include "bucket_norm.h"
#include "lane_layout.h"
#include "parallel.h"
#include "quantize.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kGrain = 65536;
constexpr int64_t kPrefetch = 4096;  // components of `out` ahead

class SharedScale {
 public:
  SLIMGRAD_INLINE SharedScale(const DequantizeArgs& args, int64_t first)
      : scale_(all_floats(args.scales[first / args.bucket_size])) {}
  SLIMGRAD_INLINE Floats operator()(int) const { return scale_; }

 private:
  Floats scale_;
};

// A scale for every component, where buckets begin inside the block.
class SpreadScale {
 public:
  SpreadScale(const DequantizeArgs& args, int64_t first) {
    const int64_t end = first + kBlock < args.n ? first + kBlock : args.n;
    for (int64_t e = first; e < end;) {
      const int64_t bucket = e / args.bucket_size;
      const int64_t next = (bucket + 1) * args.bucket_size;
      const float scale = args.scales[bucket];
      for (const int64_t stop = next < end ? next : end; e < stop; ++e) scale_[e - first] = scale;
    }
    for (int64_t i = end - first; i < kBlock; ++i) scale_[i] = 0.0f;
  }
  SLIMGRAD_INLINE Floats operator()(int i) const { return load_floats(scale_ + i); }

 private:
  alignas(64) float scale_[kBlock];
};

struct Write {
  static constexpr bool kReads = false;
  SLIMGRAD_INLINE void operator()(float* out, Floats value) const { store(out, value); }
};
struct Add {
  static constexpr bool kReads = true;
  SLIMGRAD_INLINE void operator()(float* out, Floats value) const {
    store(out, load_floats(out) + value);
  }
};
struct AddScaled {
  static constexpr bool kReads = true;
  Floats alpha;
  SLIMGRAD_INLINE void operator()(float* out, Floats value) const {
    store(out, load_floats(out) + alpha * value);
  }
};

// Reads each plane's dwords for 128 components at a time.
template <int Bits>
class PlaneReader {
 public:
  static constexpr int kPlanes = Planes<Bits>::kCount;
  SLIMGRAD_INLINE void load(const uint8_t* in, int part) {
    load_plane<0>(in, part);
    if constexpr (kPlanes > 1) load_plane<1>(in, part);
    if constexpr (kPlanes > 2) load_plane<2>(in, part);
  }
  // Bits above the symbol's are not cleared.
  SLIMGRAD_INLINE Words symbol(int slot) const {
    if constexpr (kPlanes == 1) {
      return raw<0>(slot);
    } else if constexpr (kPlanes == 2) {
      return masked<0>(slot) | (raw<1>(slot) << Planes<Bits>::low(1));
    } else {
      return masked<0>(slot) | (masked<1>(slot) << Planes<Bits>::low(1)) |
             (raw<2>(slot) << Planes<Bits>::low(2));
    }
  }

 private:
  template <int P>
  SLIMGRAD_INLINE void load_plane(const uint8_t* in, int part) {
    constexpr int w = Planes<Bits>::width(P), parts = w >= 4 ? 1 : 4 / w;
    const uint8_t* plane = in + Planes<Bits>::offset(P);
    if constexpr (w == 8) {
      piece_[P] = load_words(plane + part * 128);
      upper_ = load_words(plane + part * 128 + 64);
    } else {
      piece_[P] = load_words(plane + part / parts * 64) >> (part % parts * 8 * w);
    }
  }
  template <int P>
  SLIMGRAD_INLINE Words raw(int slot) const {
    constexpr int w = Planes<Bits>::width(P);
    return (slot * w < 32 ? piece_[P] : upper_) >> (slot * w % 32);
  }
  template <int P>
  SLIMGRAD_INLINE Words masked(int slot) const {
    return raw<P>(slot) & all_words((1u << Planes<Bits>::width(P)) - 1);
  }
  Words piece_[3]{}, upper_{};
};

template <int Bits, typename Scale, typename Sink>
SLIMGRAD_INLINE void dequantize_block(const uint8_t* in, const Lookup<1 << Bits>& values,
                                      const Scale& scale, const Sink& sink, float* out) {
  PlaneReader<Bits> reader;
  for (int part = 0; part < 4; ++part) {
    reader.load(in, part);
#pragma GCC unroll 8
    for (int slot = 0; slot < 8; ++slot) {
      const int i = part * 128 + slot * 16;
      if constexpr (Sink::kReads) prefetch_to_write(out, i + kPrefetch);
      sink(out + i, scale(i) * values[reader.symbol(slot)]);
    }
  }
}

template <int Bits, typename Scale, typename Sink>
void dequantize_blocks(const DequantizeArgs& args, const Sink& sink, int64_t first, int64_t last) {
  const Lookup<1 << Bits> values(args.values);
  alignas(64) float padded[kBlock];
  alignas(64) uint8_t block[block_bytes(Bits)];
  for (int64_t e = first; e < last; e += kBlock) {
    const Scale scale(args, e);
    const uint8_t* in = args.packed + e / kBlock * block_bytes(Bits);
    float* out = args.out + e;
    const int count = args.n - e < kBlock ? static_cast<int>(args.n - e) : kBlock;
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    if (count < kBlock) {
      __builtin_memset(block, 0, sizeof block);
      bit_string_to_lanes<Bits>(in, count, block);
      __builtin_memset(padded, 0, sizeof padded);
      if constexpr (Sink::kReads) __builtin_memcpy(padded, out, bytes);
      in = block;
      out = padded;
    }
    dequantize_block<Bits>(in, values, scale, sink, out);
    if (count < kBlock) __builtin_memcpy(args.out + e, padded, bytes);
  }
}

template <int Bits>
void dequantize_range(const DequantizeArgs& args, int64_t first, int64_t last) {
  const auto run = [&](const auto& sink) {
    using Sink = std::remove_const_t<std::remove_reference_t<decltype(sink)>>;
    if (args.bucket_size % kBlock == 0)
      dequantize_blocks<Bits, SharedScale, Sink>(args, sink, first, last);
    else
      dequantize_blocks<Bits, SpreadScale, Sink>(args, sink, first, last);
  };
  if (!args.add) return run(Write{});
  if (args.alpha == 1.0f) return run(Add{});
  run(AddScaled{all_floats(args.alpha)});
}

using RangeKernel = void (*)(const DequantizeArgs&, int64_t, int64_t);

RangeKernel range_kernel(int bits) {
  switch (bits) {
    case 2: return dequantize_range<2>;
    case 3: return dequantize_range<3>;
    case 4: return dequantize_range<4>;
    case 5: return dequantize_range<5>;
    case 6: return dequantize_range<6>;
    case 7: return dequantize_range<7>;
    default: return dequantize_range<8>;
  }
}

}  // namespace

void dequantize(const DequantizeArgs& args) {
  const RangeKernel range = range_kernel(args.bits);
  const int64_t blocks = (args.n + kBlock - 1) / kBlock;
  parallel_ranges(0, blocks, kGrain / kBlock, args.serial, [&](int64_t begin, int64_t end) {
    const IeeeArithmetic arithmetic;
    range(args, begin * kBlock, end * kBlock < args.n ? end * kBlock : args.n);
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

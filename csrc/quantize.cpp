// Bucket norm, stochastic rounding and packing in one pass over memory.
#include "quantize.h"

#include "bucket_norm.h"
#include "lane_layout.h"
#include "parallel.h"
#include "rounding.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kAhead = 2048;     // components, at least, between taking norms and rounding
constexpr int64_t kCached = 65536;   // components, at most, for both to find them in the cache
constexpr int64_t kPrefetch = 8192;  // components ahead of the norms

// What turns a component into a fraction of its bucket's norm. No bit of it is kept (the fraction
// is zero) where the norm is zero or not a number. No fraction exceeds 1: rounding is monotonic and
// the rounded root of a rounded square is the number itself, so a norm is never below a component;
// and a product of at most 1 + 2^-24, which is what the rounded inverse can give, rounds to 1.
struct Fraction {
  uint32_t keep;
  float pre, inverse;
};

SLIMGRAD_INLINE Fraction fraction_of(float norm) {
  if (!(norm > 0.0f)) return {0, 1.0f, 0.0f};
  const float pre = norm < 0x1p-100f ? 0x1p100f : norm > 0x1p100f ? 0x1p-100f : 1.0f;
  return {kMagnitudeBits, pre, 1.0f / (norm * pre)};
}

// One fraction for a whole block, of a norm that needs no `pre`.
class SharedFraction {
 public:
  explicit SLIMGRAD_INLINE SharedFraction(const Fraction& f)
      : keep_(all_words(f.keep)), inverse_(all_floats(f.inverse)) {}
  SLIMGRAD_INLINE Floats operator()(Words bits, int) const {
    return as_floats(bits & keep_) * inverse_;
  }

 private:
  Words keep_;
  Floats inverse_;
};

// A fraction for every component, where buckets begin inside the block.
class SpreadFraction {
 public:
  SpreadFraction(const QuantizeArgs& args, int64_t first) {
    const int64_t end = first + kBlock < args.n ? first + kBlock : args.n;
    for (int64_t e = first; e < end;) {
      const int64_t bucket = e / args.bucket_size;
      const int64_t next = (bucket + 1) * args.bucket_size;
      const Fraction f = fraction_of(args.scales[bucket]);
      for (const int64_t stop = next < end ? next : end; e < stop; ++e) {
        keep_[e - first] = f.keep;
        pre_[e - first] = f.pre;
        inverse_[e - first] = f.inverse;
      }
    }
    for (int64_t i = end - first; i < kBlock; ++i) keep_[i] = 0, pre_[i] = inverse_[i] = 0.0f;
  }
  SLIMGRAD_INLINE Floats operator()(Words bits, int i) const {
    return as_floats(bits & load_words(keep_ + i)) * load_floats(pre_ + i) *
           load_floats(inverse_ + i);
  }

 private:
  alignas(64) uint32_t keep_[kBlock];
  alignas(64) float pre_[kBlock], inverse_[kBlock];
};

// Of a dword full of symbols. Adding all ones to a magnitude carries into its sign bit unless the
// magnitude is zero.
template <int Bits>
SLIMGRAD_INLINE Words clear_negative_zeros(Words symbols) {
  static_assert(Planes<Bits>::kCount == 1, "needs sign and magnitude in one plane");
  const Words magnitudes = all_words(~0u / ((1u << Bits) - 1) * ((1u << (Bits - 1)) - 1));
  return symbols & (((symbols & magnitudes) + magnitudes) | magnitudes);
}

// Collects symbols and writes each plane's dwords once they are full. A symbol enters at the top of
// its dword and sinks as others follow, which takes the same few constants for every slot.
// Magnitudes arrive Shift bits up, above bits to be dropped; signs are those of the components.
template <int Bits, int Shift>
class PlaneWriter {
 public:
  static constexpr int kPlanes = Planes<Bits>::kCount;
  // Slot 0 to 7 of a part of 128 components.
  template <int Slot>
  SLIMGRAD_INLINE void put(Words magnitude, Words component, uint8_t* out, int part) {
    constexpr uint32_t ones = (1u << (Bits - 1)) - 1;
    if constexpr (kPlanes == 1) {
      dword_[0] = masked_or(moved<Shift, 32 - Bits>(magnitude), all_words(ones << (32 - Bits)),
                            dword_[0] >> Bits);
      dword_[0] = masked_or(component, all_words(0x80000000u), dword_[0]);
    } else {
      const Words j = (magnitude >> Shift) & all_words(ones);
      const Words signed_j = masked_or(component >> (32 - Bits), all_words(ones + 1), j);
      const Words symbol = select(nonzero(j), signed_j, Words{});
      put_plane<0>(symbol);
      put_plane<1>(symbol);
      if constexpr (kPlanes > 2) put_plane<2>(symbol);
    }
    write_full<0, Slot>(out, part);
    if constexpr (kPlanes > 1) write_full<1, Slot>(out, part);
    if constexpr (kPlanes > 2) write_full<2, Slot>(out, part);
  }

 private:
  template <int P>
  SLIMGRAD_INLINE void put_plane(Words symbol) {
    constexpr int w = Planes<Bits>::width(P), low = Planes<Bits>::low(P);
    const Words top = all_words(((1u << w) - 1) << (32 - w));
    dword_[P] = masked_or(moved<low, 32 - w>(symbol), top, dword_[P] >> w);
  }
  template <int P, int Slot>
  SLIMGRAD_INLINE void write_full(uint8_t* out, int part) {
    constexpr int w = Planes<Bits>::width(P), slots = 32 / w;
    if constexpr ((Slot + 1) % (slots < 8 ? slots : 8) == 0) {
      const int done = part * 8 + Slot + 1;
      if (done % slots != 0) return;
      Words dword = dword_[P];
      if constexpr (kPlanes == 1) dword = clear_negative_zeros<Bits>(dword);
      store(out + Planes<Bits>::offset(P) + (done / slots - 1) * 64, dword);
    }
  }
  Words dword_[3]{};
};

// Components of a later block, whose norm is taken while this one is rounded: one keeps the memory
// busy, the other the arithmetic units.
template <typename NormType>
struct NormAhead {
  NormType& norm;
  const float* x;
  template <int kHalf>
  SLIMGRAD_INLINE void add(int i) const {
    prefetch(x, i + kPrefetch);
    prefetch(x, i + kPrefetch + 16);
    norm.template add<kHalf>(load_floats(x + i), load_floats(x + i + 16));
  }
};
struct NoNorm {
  template <int kHalf>
  SLIMGRAD_INLINE void add(int) const {}
};

template <int Bits, typename GridType, typename FractionType, typename AheadType>
class BlockQuantizer {
 public:
  SLIMGRAD_INLINE BlockQuantizer(const float* x, const GridType& grid, const FractionType& fraction,
                                 const RandomWords& random, const AheadType& ahead)
      : x_(x), grid_(grid), fraction_(fraction), ahead_(ahead), random_(random) {}
  SLIMGRAD_INLINE void run(uint8_t* out) {
    for (int part = 0; part < 4; ++part) {
      pair<0>(out, part);
      pair<1>(out, part);
      pair<2>(out, part);
      pair<3>(out, part);
    }
  }

 private:
  template <int Pair>
  SLIMGRAD_INLINE void pair(uint8_t* out, int part) {
    const int i = part * 128 + Pair * 32;
    ahead_.template add<Pair % 2>(i);
    const Words random = random_.next();
    const Words a = as_words(load_floats(x_ + i)), b = as_words(load_floats(x_ + i + 16));
    writer_.template put<2 * Pair>(grid_.template round<0>(fraction_(a, i), random), a, out, part);
    writer_.template put<2 * Pair + 1>(grid_.template round<1>(fraction_(b, i + 16), random), b, out,
                                       part);
  }

  const float* x_;
  const GridType& grid_;
  const FractionType& fraction_;
  const AheadType& ahead_;
  RandomWords random_;
  PlaneWriter<Bits, GridType::kShift> writer_;
};

template <int Bits, typename GridType, typename FractionType, typename AheadType>
SLIMGRAD_INLINE void quantize_block(const float* x, const GridType& grid,
                                    const FractionType& fraction, const RandomWords& random,
                                    const AheadType& ahead, uint8_t* out) {
  BlockQuantizer<Bits, GridType, FractionType, AheadType>(x, grid, fraction, random, ahead)
      .run(out);
}

// A block with more than one bucket, or an extraordinary norm.
template <int Bits, typename GridType>
__attribute__((noinline)) void quantize_spread_block(const QuantizeArgs& args, int64_t first,
                                                     const float* x, const GridType& grid,
                                                     const RandomWords& random, uint8_t* out) {
  quantize_block<Bits>(x, grid, SpreadFraction(args, first), random, NoNorm{}, out);
}

template <typename NormType>
void take_scales(const QuantizeArgs& args, int64_t first, int64_t last) {
  for (int64_t e = first; e < last; e += args.bucket_size) {
    const int64_t left = last - e;
    args.scales[e / args.bucket_size] = bucket_scale<NormType>(
        args.vector + e, left < args.bucket_size ? left : args.bucket_size);
  }
}

// Rounds and packs components [first, last). Norms of buckets that begin `lead` components after
// `first` or later, and end before `last`, are taken on the way; all others must be known.
template <int Bits, typename NormType, typename GridType>
void quantize_blocks(const QuantizeArgs& args, const GridType& grid, int64_t first, int64_t last,
                     int64_t lead) {
  alignas(64) float padded[kBlock];
  alignas(64) uint8_t block[block_bytes(Bits)];
  const int64_t size = args.bucket_size;
  const bool bucket_holds_blocks = size % kBlock == 0;
  const int64_t norms_end = lead == 0 ? first : first + (last - first) / size * size;
  NormType norm;
  for (int64_t e = first; e < last; e += kBlock) {
    const float* x = args.vector + e;
    uint8_t* const place = args.packed + e / kBlock * block_bytes(Bits);
    uint8_t* out = place;
    const int count = last - e < kBlock ? static_cast<int>(last - e) : kBlock;
    if (count < kBlock) {
      __builtin_memset(padded, 0, sizeof padded);
      __builtin_memcpy(padded, x, static_cast<size_t>(count) * sizeof(float));
      x = padded;
      out = block;
    }
    const RandomWords random(chunk_keys(args.key, e / kChunk), e % kChunk);
    const Fraction f = fraction_of(args.scales[e / size]);
    const int64_t later = e + lead;
    const bool takes_norm = later < norms_end;
    if (bucket_holds_blocks && f.pre == 1.0f) {
      const float* ahead = takes_norm ? args.vector + later : x;
      quantize_block<Bits>(x, grid, SharedFraction(f), random, NormAhead<NormType>{norm, ahead},
                           out);
    } else {
      quantize_spread_block<Bits>(args, e, x, grid, random, out);
      if (takes_norm) add_components(norm, args.vector + later, kBlock);
    }
    const int64_t end = later + kBlock;
    if (takes_norm && end % size == 0) {
      args.scales[later / size] = norm.scale(args.vector + end - size, size);
      norm = NormType();
    }
    if (count < kBlock) lanes_to_bit_string<Bits>(block, count, place);
  }
}

template <int Bits, typename NormType>
void round_range(const QuantizeArgs& args, int64_t first, int64_t last, int64_t lead) {
  if (args.grid == Grid::uniform) {
    quantize_blocks<Bits, NormType>(args, UniformGrid(args), first, last, lead);
  } else if (args.grid == Grid::exponential) {
    quantize_blocks<Bits, NormType>(args, ExponentialGrid(args), first, last, lead);
  } else {
    const typename TableGrid<Bits>::Memory memory(args);
    quantize_blocks<Bits, NormType>(args, TableGrid<Bits>(memory), first, last, lead);
  }
}

// The work of one thread, for one kind of norm.
struct RangeKernels {
  void (*scales)(const QuantizeArgs&, int64_t first, int64_t last);
  void (*round)(const QuantizeArgs&, int64_t first, int64_t last, int64_t lead);
};

template <typename NormType>
RangeKernels range_kernels(int bits) {
  switch (bits) {
    case 2: return {take_scales<NormType>, round_range<2, NormType>};
    case 3: return {take_scales<NormType>, round_range<3, NormType>};
    case 4: return {take_scales<NormType>, round_range<4, NormType>};
    case 5: return {take_scales<NormType>, round_range<5, NormType>};
    case 6: return {take_scales<NormType>, round_range<6, NormType>};
    case 7: return {take_scales<NormType>, round_range<7, NormType>};
    default: return {take_scales<NormType>, round_range<8, NormType>};
  }
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t at_least_one(int64_t a) { return a < 1 ? 1 : a; }
int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Components after which both a bucket and a block end; 0 when they do not fit in the cache.
int64_t tile_size(int64_t bucket_size) {
  int64_t a = bucket_size, b = kBlock;
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  const int64_t blocks = kBlock / a;
  return bucket_size > kCached / blocks ? 0 : bucket_size * blocks;
}

}  // namespace

void quantize(const QuantizeArgs& args) {
  const RangeKernels kernels = args.norm == Norm::l2 ? range_kernels<SumOfSquares>(args.bits)
                                                     : range_kernels<LargestMagnitude>(args.bits);
  const int64_t n = args.n, tile = tile_size(args.bucket_size);
  // Runs work(first, last) over components in multiples of `unit`.
  const auto over_components = [&](int64_t unit, auto work) {
    parallel_ranges(0, ceil_divide(n, unit), at_least_one(kChunk / unit), args.serial,
                    [&](int64_t begin, int64_t end) {
                      const IeeeArithmetic arithmetic;
                      work(begin * unit, smaller(end * unit, n));
                    });
  };
  if (tile == 0) {
    over_components(args.bucket_size,
                    [&](int64_t first, int64_t last) { kernels.scales(args, first, last); });
    over_components(kBlock,
                    [&](int64_t first, int64_t last) { kernels.round(args, first, last, 0); });
  } else if (args.bucket_size % kBlock == 0) {
    const int64_t lead = ceil_divide(kAhead, tile) * tile;
    over_components(tile, [&](int64_t first, int64_t last) {
      kernels.scales(args, first, smaller(first + lead, last));
      const int64_t whole = first + (last - first) / tile * tile;
      if (whole >= first + lead) kernels.scales(args, whole, last);
      kernels.round(args, first, last, lead);
    });
  } else {
    const int64_t step = ceil_divide(kAhead, tile) * tile;
    over_components(tile, [&](int64_t first, int64_t last) {
      for (; first < last; first += step) {
        kernels.scales(args, first, smaller(first + step, last));
        kernels.round(args, first, smaller(first + step, last), 0);
      }
    });
  }
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Bucket norm, stochastic rounding and packing in one pass over memory.
#include "quantize.h"

#include "bucket_norm.h"
#include "lane_layout.h"
#include "parallel.h"
#include "rounding.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kTile = 4096;         // components whose norms are taken before they are rounded
constexpr int64_t kLargestTile = 65536;  // above this a tile would leave the cache in between
constexpr int64_t kPrefetch = 16384;     // components ahead: the norm pass of a later tile finds them

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

// Collects the symbols of 128 components and writes each plane's dwords once they are full.
// Magnitudes arrive Shift bits up, above bits to be dropped; signs are those of the components.
template <int Bits, int Shift>
class PlaneWriter {
 public:
  static constexpr int kPlanes = Planes<Bits>::kCount;
  template <int Slot>
  SLIMGRAD_INLINE void put(Words magnitude, Words component) {
    if constexpr (kPlanes == 1) {
      constexpr int place = Slot * Bits % 32;
      constexpr uint32_t ones = (1u << (Bits - 1)) - 1;
      Words& dword = Slot * Bits < 32 ? piece_[0] : upper_;
      if (place == 0) dword = Words{};
      dword = masked_or(moved<Shift, place>(magnitude), all_words(ones << place), dword);
      dword = masked_or(moved<31, place + Bits - 1>(component),
                        all_words(1u << (place + Bits - 1)), dword);
    } else {
      const Words j = (magnitude >> Shift) & all_words((1u << (Bits - 1)) - 1);
      const Words signed_j =
          masked_or(component >> (32 - Bits), all_words(1u << (Bits - 1)), j);
      const Words symbol = select(nonzero(j), signed_j, Words{});
      put_plane<0, Slot>(symbol);
      put_plane<1, Slot>(symbol);
      if constexpr (kPlanes > 2) put_plane<2, Slot>(symbol);
    }
  }
  SLIMGRAD_INLINE void flush(uint8_t* out, int part) {
    flush_plane<0>(out, part);
    if constexpr (kPlanes > 1) flush_plane<1>(out, part);
    if constexpr (kPlanes > 2) flush_plane<2>(out, part);
  }

 private:
  template <int P, int Slot>
  SLIMGRAD_INLINE void put_plane(Words symbol) {
    constexpr int w = Planes<Bits>::width(P), low = Planes<Bits>::low(P);
    constexpr int place = Slot * w % 32;
    static_assert(w < 8, "a plane of 8 bits has no other beside it");
    Words bits = symbol >> low;
    if constexpr (low + w < Bits) bits = bits & all_words((1u << w) - 1);
    piece_[P] = place == 0 ? bits : piece_[P] | (bits << place);
  }
  template <int P>
  SLIMGRAD_INLINE void flush_plane(uint8_t* out, int part) {
    constexpr int w = Planes<Bits>::width(P), parts = w >= 4 ? 1 : 4 / w;
    uint8_t* plane = out + Planes<Bits>::offset(P);
    if constexpr (w == 8) {
      write(plane + part * 128, piece_[P]);
      write(plane + part * 128 + 64, upper_);
    } else if constexpr (parts == 1) {
      write(plane + part * 64, piece_[P]);
    } else {
      const int place = part % parts;
      held_[P] = place == 0 ? piece_[P] : held_[P] | (piece_[P] << (place * 8 * w));
      if (place == parts - 1) write(plane + part / parts * 64, held_[P]);
    }
  }
  static SLIMGRAD_INLINE void write(uint8_t* to, Words dword) {
    if constexpr (kPlanes == 1) dword = clear_negative_zeros<Bits>(dword);
    store(to, dword);
  }
  Words piece_[3]{}, held_[3]{}, upper_{};
};

template <int Bits, typename GridType, typename FractionType>
class BlockQuantizer {
 public:
  SLIMGRAD_INLINE BlockQuantizer(const float* x, const GridType& grid, const FractionType& fraction,
                                 const RandomWords& random)
      : x_(x), grid_(grid), fraction_(fraction), random_(random) {}
  SLIMGRAD_INLINE void run(uint8_t* out) {
    for (int part = 0; part < 4; ++part) {
      pair<0>(part);
      pair<1>(part);
      pair<2>(part);
      pair<3>(part);
      writer_.flush(out, part);
    }
  }

 private:
  template <int Pair>
  SLIMGRAD_INLINE void pair(int part) {
    const int i = part * 128 + Pair * 32;
    prefetch(x_, i + kPrefetch);
    prefetch(x_, i + kPrefetch + 16);
    const Words random = random_.next();
    const Words a = as_words(load_floats(x_ + i)), b = as_words(load_floats(x_ + i + 16));
    writer_.template put<2 * Pair>(grid_.template round<0>(fraction_(a, i), random), a);
    writer_.template put<2 * Pair + 1>(grid_.template round<1>(fraction_(b, i + 16), random), b);
  }

  const float* x_;
  const GridType& grid_;
  const FractionType& fraction_;
  RandomWords random_;
  PlaneWriter<Bits, GridType::kShift> writer_;
};

template <int Bits, typename GridType, typename FractionType>
SLIMGRAD_INLINE void quantize_block(const float* x, const GridType& grid,
                                    const FractionType& fraction, const RandomWords& random,
                                    uint8_t* out) {
  BlockQuantizer<Bits, GridType, FractionType>(x, grid, fraction, random).run(out);
}

// Rounds and packs components [first, last) of whole blocks, or up to the end of the vector.
template <int Bits, typename GridType>
void quantize_blocks(const QuantizeArgs& args, const GridType& grid, int64_t first, int64_t last) {
  alignas(64) float padded[kBlock];
  alignas(64) uint8_t block[block_bytes(Bits)];
  const bool bucket_holds_blocks = args.bucket_size % kBlock == 0;
  for (int64_t e = first; e < last; e += kBlock) {
    const float* x = args.vector + e;
    uint8_t* const place = args.packed + e / kBlock * block_bytes(Bits);
    uint8_t* out = place;
    const int count = args.n - e < kBlock ? static_cast<int>(args.n - e) : kBlock;
    if (count < kBlock) {
      __builtin_memset(padded, 0, sizeof padded);
      __builtin_memcpy(padded, x, static_cast<size_t>(count) * sizeof(float));
      x = padded;
      out = block;
    }
    const RandomWords random(chunk_keys(args.key, e / kChunk), e % kChunk);
    const Fraction f = fraction_of(args.scales[e / args.bucket_size]);
    if (bucket_holds_blocks && f.pre == 1.0f) {
      quantize_block<Bits>(x, grid, SharedFraction(f), random, out);
    } else {
      quantize_block<Bits>(x, grid, SpreadFraction(args, e), random, out);
    }
    if (count < kBlock) lanes_to_bit_string<Bits>(block, count, place);
  }
}

template <int Bits>
void quantize_range(const QuantizeArgs& args, int64_t first, int64_t last) {
  if (args.grid == Grid::uniform) {
    quantize_blocks<Bits>(args, UniformGrid(args), first, last);
  } else if (args.grid == Grid::exponential) {
    quantize_blocks<Bits>(args, ExponentialGrid(args), first, last);
  } else {
    const typename TableGrid<Bits>::Memory memory(args);
    quantize_blocks<Bits>(args, TableGrid<Bits>(memory), first, last);
  }
}

using RangeKernel = void (*)(const QuantizeArgs&, int64_t, int64_t);

RangeKernel range_kernel(int bits) {
  switch (bits) {
    case 2: return quantize_range<2>;
    case 3: return quantize_range<3>;
    case 4: return quantize_range<4>;
    case 5: return quantize_range<5>;
    case 6: return quantize_range<6>;
    case 7: return quantize_range<7>;
    default: return quantize_range<8>;
  }
}

void take_scales(const QuantizeArgs& args, int64_t first_bucket, int64_t last_bucket) {
  for (int64_t b = first_bucket; b < last_bucket; ++b) {
    const int64_t begin = b * args.bucket_size;
    const int64_t left = args.n - begin;
    const int64_t count = left < args.bucket_size ? left : args.bucket_size;
    args.scales[b] = args.norm == Norm::l2 ? bucket_scale<Norm::l2>(args.vector + begin, count)
                                           : bucket_scale<Norm::linf>(args.vector + begin, count);
  }
}

// Components after which both a bucket and a block end, 0 when that is too many.
int64_t tile_size(int64_t bucket_size) {
  int64_t a = bucket_size, b = kBlock;
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  if (bucket_size > kLargestTile / (kBlock / a)) return 0;
  const int64_t tile = bucket_size * (kBlock / a);
  return tile >= kTile ? tile : tile * (kTile / tile);
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t at_least_one(int64_t a) { return a < 1 ? 1 : a; }

}  // namespace

void quantize(const QuantizeArgs& args) {
  const RangeKernel range = range_kernel(args.bits);
  const int64_t n = args.n, buckets = ceil_divide(n, args.bucket_size);
  const int64_t tile = tile_size(args.bucket_size);
  if (tile != 0) {
    const int64_t tiles = ceil_divide(n, tile), buckets_a_tile = tile / args.bucket_size;
    parallel_ranges(0, tiles, at_least_one(kChunk / tile), args.serial,
                    [&](int64_t begin, int64_t end) {
                      const IeeeArithmetic arithmetic;
                      for (int64_t t = begin; t < end; ++t) {
                        const int64_t stop = (t + 1) * buckets_a_tile;
                        take_scales(args, t * buckets_a_tile, stop < buckets ? stop : buckets);
                        range(args, t * tile, (t + 1) * tile < n ? (t + 1) * tile : n);
                      }
                    });
    return;
  }
  parallel_ranges(0, buckets, at_least_one(kChunk / args.bucket_size), args.serial,
                  [&](int64_t begin, int64_t end) {
                    const IeeeArithmetic arithmetic;
                    take_scales(args, begin, end);
                  });
  parallel_ranges(0, ceil_divide(n, kBlock), kChunk / kBlock, args.serial,
                  [&](int64_t begin, int64_t end) {
                    const IeeeArithmetic arithmetic;
                    range(args, begin * kBlock, end * kBlock < n ? end * kBlock : n);
                  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

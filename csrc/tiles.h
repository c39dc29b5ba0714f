// A pass over components in tiles, at whose ends both a bucket and a block end, so that the scales
// of a tile are taken while it is in the cache and its symbols are made right after.
#pragma once
#include "bucket_norm.h"
#include "lane_layout.h"
#include "parallel.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kTile = 2048;        // components, at least, that take turns
constexpr int64_t kMostCached = 65536; // components, at most, that stay in the cache
constexpr int64_t kGrainOfTiles = 65536;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t round_up(int64_t a, int64_t unit) { return (a + unit - 1) / unit * unit; }

// Runs work(first, last) over [0, n) on all threads, in ranges that begin at multiples of `unit`.
template <typename Work>
void over_ranges(int64_t n, int64_t unit, bool serial, const Work& work) {
  const int64_t grain = kGrainOfTiles / unit;
  parallel_ranges(0, (n + unit - 1) / unit, grain < 1 ? 1 : grain, serial,
                  [&](int64_t begin, int64_t end) {
                    const IeeeArithmetic arithmetic;
                    work(begin * unit, least(end * unit, n));
                  });
}

// The least common multiple of a bucket and a block; 0 when it does not fit in the cache.
inline int64_t tile_of(int64_t bucket_size) {
  int64_t a = bucket_size, b = kBlock;
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  const int64_t blocks = kBlock / a;
  return bucket_size > kMostCached / blocks ? 0 : bucket_size * blocks;
}

// Runs take(first, last), which takes scales of whole buckets, and then put(first, last), which
// makes symbols of whole blocks, over all n components.
template <typename Take, typename Put>
void in_tiles(int64_t n, int64_t bucket_size, bool serial, const Take& take, const Put& put) {
  const int64_t tile = tile_of(bucket_size);
  if (tile == 0) {
    over_ranges(n, bucket_size, serial, take);
    over_ranges(n, kBlock, serial, put);
    return;
  }
  const int64_t step = round_up(kTile, tile);
  over_ranges(n, tile, serial, [&](int64_t first, int64_t last) {
    for (; first < last; first += step) {
      const int64_t stop = least(first + step, last);
      take(first, stop);
      put(first, stop);
    }
  });
}

// Scales of the buckets that begin in [first, last).
template <typename NormType, typename Args>
void scales_in(const Args& args, int64_t first, int64_t last) {
  for (int64_t e = first; e < last; e += args.bucket_size)
    args.scales[e / args.bucket_size] =
        bucket_scale<NormType>(args.vector + e, least(args.bucket_size, args.n - e));
}

template <typename Args>
void take_norms(const Args& args, int64_t first, int64_t last) {
  switch (args.norm) {
    case Norm::l2: return scales_in<SumOfSquares>(args, first, last);
    case Norm::linf: return scales_in<LargestMagnitude>(args, first, last);
    case Norm::power_of_two: return scales_in<PowerOfTwoAbove>(args, first, last);
    case Norm::mean: return scales_in<MeanMagnitude>(args, first, last);
    default: return scales_in<Unit>(args, first, last);
  }
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

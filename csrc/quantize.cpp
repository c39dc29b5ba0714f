// Bucket norm, stochastic rounding and packing in one pass over memory.
#include "quantize.h"

#include "fused_block.h"
#include "parallel.h"
#include "step_norm.h"
#include "tiles.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kAhead = 2048;    // components, at least, between taking norms and rounding

template <typename NormType>
void take_scales(const QuantizeArgs& args, int64_t first, int64_t last) {
  for (int64_t e = first; e < last; e += args.bucket_size) {
    const int64_t size = last - e < args.bucket_size ? last - e : args.bucket_size;
    NormType norm;
    add_components(norm, args.vector + e, size);
    args.scales[e / args.bucket_size] = finished(norm, args, args.vector + e, size);
  }
}

// Rounds and packs components [first, last), whose norms are known.
template <typename GridType>
void round_blocks(const QuantizeArgs& args, const GridType& grid, int64_t first, int64_t last) {
  for (int64_t e = first; e < last; e += kBlock) quantize_any_block(args, grid, e);
}

void round_range(const QuantizeArgs& args, int64_t first, int64_t last) {
  if (args.grid == Grid::uniform) {
    round_blocks(args, UniformGrid(args), first, last);
  } else if (args.grid == Grid::exponential) {
    round_blocks(args, ExponentialGrid(args), first, last);
  } else if (args.grid == Grid::integer) {
    round_blocks(args, IntegerGrid(args), first, last);
  } else if (args.bits <= 4) {
    const TableGrid<8>::Memory memory(args);
    round_blocks(args, TableGrid<8>(memory), first, last);
  } else {
    const TableGrid<128>::Memory memory(args);
    round_blocks(args, TableGrid<128>(memory), first, last);
  }
}

// Whether fused_range serves.
bool is_fused(const QuantizeArgs& args) {
  if (args.bucket_size % kBlock != 0) return false;
  if (args.norm == Norm::power_of_two) return args.grid == Grid::exponential && args.bits == 8;
  return has_fused_block(args.bits) && (args.grid != Grid::table || args.bits <= 4);
}

// The bucket of a component, block by block without division.
class Place {
 public:
  int64_t bucket;
  Place(int64_t component, int64_t size)
      : bucket(component / size), left_(size - component % size), size_(size) {}
  // To the next block; whether a bucket ended.
  bool advance() {
    left_ -= kBlock;
    if (left_ > 0) return false;
    left_ = size_;
    ++bucket;
    return true;
  }

 private:
  int64_t left_, size_;
};

// Rounds and packs components [first, last). Norms of buckets that begin `lead` components after
// `first` or later, and end before `last`, are taken on the way; all others must be known.
template <int kBits, typename NormType, typename GridType>
void fused_blocks(const QuantizeArgs& args, const GridType& grid, int64_t first, int64_t last,
                  int64_t lead) {
  const int64_t size = args.bucket_size;
  const int64_t norms_end = lead == 0 ? first : first + (last - first) / size * size;
  NormType norm;
  RandomWords random(args.key, first);
  Place place(first, size), later(first + lead, size);
  for (int64_t e = first; e < last; e += kBlock) {
    if (e % kChunk == 0) random = RandomWords(args.key, e);
    const float* x = args.vector + e;
    const float scale = args.scales[place.bucket];
    const Fraction fraction = GridType::prepared(fraction_of(scale));
    const bool is_plain = fraction.pre == 1.0f && !(GridType::kTakesSigns && scale != scale);
    const bool takes_norm = e + lead < norms_end;
    if (last - e >= kBlock && is_plain) {
      // Behind the last norm to be taken the sums are of no use, and done without a branch.
      const float* ahead = takes_norm ? x + lead : x;
      FusedBlock<kBits, GridType, NormType>(x, grid, fraction, random, ahead, norm)
          .run(args.packed + e / kBlock * block_bytes(kBits));
    } else {
      quantize_any_block(args, grid, e);
      random.skip(kBlock);
      if (takes_norm) add_components(norm, x + lead, kBlock);
    }
    place.advance();
    if (later.advance() && takes_norm) {
      args.scales[later.bucket - 1] = finished(norm, args, x + lead + kBlock - size, size);
      norm = NormType();
    }
  }
}

template <typename NormType, typename GridType>
void fused_narrow(const QuantizeArgs& args, const GridType& grid, int64_t first, int64_t last,
                  int64_t lead) {
  switch (args.bits) {
    case 2: return fused_blocks<2, NormType>(args, grid, first, last, lead);
    case 3: return fused_blocks<3, NormType>(args, grid, first, last, lead);
    default: return fused_blocks<4, NormType>(args, grid, first, last, lead);
  }
}

template <typename NormType, typename GridType>
void fused_width(const QuantizeArgs& args, const GridType& grid, int64_t first, int64_t last,
                 int64_t lead) {
  if (args.bits == 8)
    fused_blocks<8, NormType>(args, grid, first, last, lead);
  else
    fused_narrow<NormType>(args, grid, first, last, lead);
}

template <typename NormType>
void fused_range(const QuantizeArgs& args, int64_t first, int64_t last, int64_t lead) {
  if (args.grid == Grid::uniform)
    return fused_width<NormType>(args, UniformGrid(args), first, last, lead);
  if (args.grid == Grid::exponential)
    return fused_width<NormType>(args, ExponentialGrid(args), first, last, lead);
  const TableGrid<8>::Memory memory(args);
  fused_narrow<NormType>(args, TableGrid<8>(memory), first, last, lead);
}

void fused_integers(const QuantizeArgs& args, int64_t first, int64_t last, int64_t lead) {
  fused_width<StepOfIntegers>(args, IntegerGrid(args), first, last, lead);
}

void fused_powers_of_two(const QuantizeArgs& args, int64_t first, int64_t last, int64_t lead) {
  fused_blocks<8, PowerOfTwoAbove>(args, ExponentialGrid(args), first, last, lead);
}

// The work of one thread that depends on the norm.
struct NormKernels {
  void (*scales)(const QuantizeArgs&, int64_t first, int64_t last);
  void (*fused)(const QuantizeArgs&, int64_t first, int64_t last, int64_t lead);
};

NormKernels kernels_of(Norm norm) {
  switch (norm) {
    case Norm::l2: return {take_scales<SumOfSquares>, fused_range<SumOfSquares>};
    case Norm::linf: return {take_scales<LargestMagnitude>, fused_range<LargestMagnitude>};
    case Norm::power_of_two: return {take_scales<PowerOfTwoAbove>, fused_powers_of_two};
    default: return {take_scales<StepOfIntegers>, fused_integers};
  }
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t at_least_one(int64_t a) { return a < 1 ? 1 : a; }
int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace

void quantize(const QuantizeArgs& args) {
  const NormKernels kernels = kernels_of(args.norm);
  const int64_t n = args.n, tile = tile_of(args.bucket_size);
  const bool fused = is_fused(args);
  // Runs work(first, last) over components in multiples of `unit`.
  const auto over_components = [&](int64_t unit, auto work) {
    parallel_ranges(0, ceil_divide(n, unit), at_least_one(kChunk / unit), args.serial,
                    [&](int64_t begin, int64_t end) {
                      const IeeeArithmetic arithmetic;
                      work(begin * unit, smaller(end * unit, n));
                    });
  };
  const auto round_known = [&](int64_t first, int64_t last) {
    if (fused)
      kernels.fused(args, first, last, 0);
    else
      round_range(args, first, last);
  };
  if (tile == 0) {
    over_components(args.bucket_size,
                    [&](int64_t first, int64_t last) { kernels.scales(args, first, last); });
    over_components(kBlock, round_known);
  } else if (fused) {
    const int64_t lead = ceil_divide(kAhead, tile) * tile;
    over_components(tile, [&](int64_t first, int64_t last) {
      kernels.scales(args, first, smaller(first + lead, last));
      const int64_t whole = first + (last - first) / tile * tile;
      if (whole >= first + lead) kernels.scales(args, whole, last);
      kernels.fused(args, first, last, lead);
    });
  } else {
    const int64_t step = ceil_divide(kAhead, tile) * tile;
    over_components(tile, [&](int64_t first, int64_t last) {
      for (; first < last; first += step) {
        const int64_t stop = smaller(first + step, last);
        kernels.scales(args, first, stop);
        round_range(args, first, stop);
      }
    });
  }
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

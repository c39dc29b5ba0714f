// Several messages decoded and added up in one pass over memory: a few blocks of the sum stay in the
// first-level cache until every message is in it.
#include "summing.h"

#include "lane_layout.h"
#include "parallel.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kTile = 4 * kBlock;  // components
constexpr int64_t kGrain = 65536 / kTile;

template <typename Args>
Args adding_to(Args args, const SumArgs& sum) {
  args.n = sum.n;
  args.out = sum.out;
  args.add = true;
  args.alpha = 1.0f;
  return args;
}

void add_part(const Summand& message, const SumArgs& sum, int64_t first, int64_t last) {
  switch (message.transform) {
    case Transform::none:
      return dequantize_part(adding_to(message.levels, sum), first, last);
    case Transform::dither:
      return undither_part(adding_to(message.dither, sum), first, last);
    case Transform::rotation:
      return rotate_dequantize_part(adding_to(message.rotation, sum), first, last);
  }
}

}  // namespace

void sum_messages(const SumArgs& args) {
  const int64_t tiles = (args.n + kTile - 1) / kTile;
  parallel_ranges(0, tiles, kGrain, args.serial, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kTile;
      const int64_t last = first + kTile < args.n ? first + kTile : args.n;
      __builtin_memset(args.out + first, 0, static_cast<size_t>(last - first) * sizeof(float));
      for (const Summand& message : args.messages) add_part(message, args, first, last);
    }
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

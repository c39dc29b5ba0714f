// The scale of every component of a block in which buckets may begin.
#pragma once
#include "lane_layout.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Of the `count` components from `first` on; 0 behind them, up to a whole block.
inline void spread_scales(const float* scales, int64_t bucket_size, int64_t first, int count,
                          float* scale) {
  const int64_t end = first + count;
  for (int64_t e = first; e < end;) {
    const int64_t bucket = e / bucket_size;
    const int64_t next = (bucket + 1) * bucket_size;
    const float each = scales[bucket];
    for (const int64_t stop = next < end ? next : end; e < stop; ++e) scale[e - first] = each;
  }
  for (int i = count; i < kBlock; ++i) scale[i] = 0.0f;
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

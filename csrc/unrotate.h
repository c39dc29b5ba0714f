// One rotated block from its symbols back to components.
#pragma once
#include "hadamard.h"
#include "sinks.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kWriteAhead = 2048;  // components

// Levels of the symbols, the rotation undone as far as neighbouring slots go.
SLIMGRAD_INLINE void begin_unrotation(const uint8_t* in, int bits, const Lookup<16>& values,
                                      float* middle) {
  alignas(64) uint32_t symbols[kBlock];
  const bool nibbles = bits == 4;
  if (!nibbles) unpack_block(in, bits, symbols);
  for (int far = 0; far < kFar; ++far) {
    Floats v[kNear];
    if (nibbles) {
      const Words eight = load_words(in + far * 64);
#pragma GCC unroll 8
      for (int near = 0; near < kNear; ++near) v[near] = values[eight >> (near * 4)];
    } else {
      for (int near = 0; near < kNear; ++near)
        v[near] = values[load_words(symbols + (far * kNear + near) * 16)];
    }
    first_stages(v);
#pragma GCC unroll 8
    for (int near = 0; near < kNear; ++near) store(middle + (far * kNear + near) * 16, v[near]);
  }
}

// Calls sink(out, value) for each vector of the block.
template <typename Sink>
SLIMGRAD_INLINE void unrotate_block(const uint8_t* in, int bits, const Lookup<16>& values,
                                    const BlockSigns& signs, bool twice, float scale, float* out,
                                    const Sink& sink) {
  alignas(64) float middle[kBlock];
  begin_unrotation(in, bits, values, middle);
  if (twice) join_rotations(middle, signs.second);
  const Floats factor = all_floats(scale);
  for (int near = 0; near < kNear; ++near) {
    Floats v[kFar];
#pragma GCC unroll 4
    for (int far = 0; far < kFar; ++far) v[far] = load_floats(middle + (far * kNear + near) * 16);
    last_stages(v);
    const Words highest = signs.first << (kNear - 1 - near);
#pragma GCC unroll 4
    for (int far = 0; far < kFar; ++far) {
      float* to = out + (far * kNear + near) * 16;
      if constexpr (Sink::kReads) prefetch_to_write(to, kWriteAhead);
      sink(to, flipped(v[far] * factor, highest << ((kFar - 1 - far) * kNear)));
    }
  }
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Sixteen random bits for every component, from a key and the component's place.
#pragma once
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kChunk = 65536;  // components that share a pair of 32-bit keys

struct ChunkKeys {
  uint32_t first, second;
};

SLIMGRAD_INLINE ChunkKeys chunk_keys(uint64_t key, int64_t chunk) {
  uint64_t z = key + (static_cast<uint64_t>(chunk) + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return {static_cast<uint32_t>(z), static_cast<uint32_t>(z >> 32)};
}

// Thirty-two random bits a lane: the low half for one vector of components, the high half for the
// next. Steps from one pair of vectors to the next.
class RandomWords {
 public:
  // From component `first` on, a multiple of 32.
  SLIMGRAD_INLINE RandomWords(uint64_t key, int64_t first) {
    const ChunkKeys keys = chunk_keys(key, first / kChunk);
    alignas(64) uint32_t start[16];
    const uint32_t counter = static_cast<uint32_t>(first % kChunk / 2);
    for (uint32_t lane = 0; lane < 16; ++lane) start[lane] = (counter + lane) * kStep + keys.first;
    state_ = load_words(start);
    second_ = all_words(keys.second);
  }
  SLIMGRAD_INLINE Words next() {
    Words x = state_;
    state_ = state_ + all_words(16 * kStep);
    x = x ^ (x >> 16);
    x = x * all_words(0x7FEB352Du);
    x = x ^ (x >> 15);
    x = x ^ second_;
    x = x * all_words(0x846CA68Bu);
    return x ^ (x >> 16);
  }

  // Leaves out `components`, a multiple of 32.
  SLIMGRAD_INLINE void skip(uint32_t components) {
    state_ = state_ + all_words(components / 2 * kStep);
  }

 private:
  static constexpr uint32_t kStep = 0x9E3779B9u;
  Words state_, second_;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

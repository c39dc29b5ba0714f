// Blocks side by side, one a lane: a step takes the next component of 128 blocks at once.
#pragma once
#include "lane_layout.h"
#include "rans.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Symbols in planes of 4 or 8 bits with blocks as lanes, so that component e of every block is at
// the same place of 128 dwords that follow one another.
class BlockLanes {
 public:
  explicit BlockLanes(int bits) : bits_(bits), width_(bits <= 4 ? 4 : 8) {
    __builtin_memset(dwords_[kNone], 0, sizeof dwords_[kNone]);
  }

  void clear() { __builtin_memset(dwords_, 0, sizeof dwords_); }
  // A block of `count` symbols, a bit string if they are fewer than kBlock.
  void read(int lane, const uint8_t* packed, int count) {
    alignas(64) uint8_t planes[kBlock];
    alignas(64) uint32_t symbols[kBlock];
    const uint8_t* from = packed;
    if (count < kBlock || bits_ != width_) {
      if (count < kBlock)
        unpack_bit_string(packed, count, bits_, symbols);
      else
        unpack_block(packed, bits_, symbols);
      pack_block(symbols, width_, planes);
      from = planes;
    }
    for (int i = 0; i < 16 * width_; ++i)
      __builtin_memcpy(&dwords_[i][lane], from + 4 * i, sizeof(uint32_t));
  }
  void write(int lane, uint8_t* packed, int count) const {
    alignas(64) uint8_t planes[kBlock];
    alignas(64) uint32_t symbols[kBlock];
    uint8_t* to = count < kBlock || bits_ != width_ ? planes : packed;
    for (int i = 0; i < 16 * width_; ++i)
      __builtin_memcpy(to + 4 * i, &dwords_[i][lane], sizeof(uint32_t));
    if (to == packed) return;
    unpack_block(planes, width_, symbols);
    if (count < kBlock)
      pack_bit_string(symbols, count, bits_, packed);
    else
      pack_block(symbols, bits_, packed);
  }

  // Component e of all blocks, or zeros before the first.
  struct Step {
    uint32_t* dwords;
    int shift;
    uint32_t ones;
    SLIMGRAD_INLINE Words symbols(int vector) const {
      return (load_words(dwords + 16 * vector) >> shift) & all_words(ones);
    }
    SLIMGRAD_INLINE void put(int vector, Words symbols) const {
      uint32_t* place = dwords + 16 * vector;
      store(place, load_words(place) | (symbols << shift));
    }
    uint32_t symbol(int lane) const { return dwords[lane] >> shift & ones; }
    void put_one(int lane, uint32_t symbol) const { dwords[lane] |= symbol << shift; }
  };
  SLIMGRAD_INLINE Step step(int e) {
    if (e < 0) return {dwords_[kNone], 0, 0};
    const int slot = e / 16, shared = 32 / width_;
    return {dwords_[slot / shared * 16 + e % 16], slot % shared * width_, (1u << width_) - 1};
  }

 private:
  static constexpr int kNone = 16 * 8;
  int bits_, width_;
  alignas(64) uint32_t dwords_[kNone + 1][kStates];
};

// The blocks of a chunk that are coded side by side: those from `first` on.
struct Round {
  int64_t first;
  int lanes;     // blocks there are, at most kStates
  int vectors;   // vectors of lanes that are all whole blocks, an even number
  int rest;      // components of the last block if it is a shorter one, else kBlock

  Round(int64_t symbols, int64_t number) : first(number * kStates) {
    const int64_t blocks = (symbols + kBlock - 1) / kBlock - first;
    lanes = blocks < kStates ? static_cast<int>(blocks) : kStates;
    const int64_t left = symbols - (first + lanes - 1) * kBlock;
    rest = left < kBlock ? static_cast<int>(left) : kBlock;
    vectors = (lanes - (rest < kBlock)) / 32 * 2;
  }
  int components(int lane) const { return lane == lanes - 1 ? rest : kBlock; }
};

inline int64_t round_count(int64_t symbols) {
  const int64_t each = int64_t{kStates} * kBlock;
  return (symbols + each - 1) / each;
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

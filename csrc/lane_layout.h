// Where the bits of a symbol lie: blocks of 512 components in sixteen dword lanes, split in planes
// of 8, 4, 2 and 1 bits, low bits first; a shorter last block is a plain bit string.
#pragma once
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kBlock = 512;

constexpr int64_t block_bytes(int bits) { return int64_t{kBlock / 8} * bits; }

// Calls function(width, low, offset) for every plane of symbols of `bits` bits: its width, the
// lowest bit of the symbol that it holds, and the bytes of the block that precede it.
template <typename Function>
SLIMGRAD_INLINE void for_each_plane(int bits, const Function& function) {
  for (int width = 8, low = 0; width >= 1; width /= 2) {
    if ((bits & width) == 0) continue;
    function(width, low, block_bytes(low));
    low += width;
  }
}

// A whole block, from one symbol a dword.
inline void pack_block(const uint32_t* symbols, int bits, uint8_t* out) {
  for_each_plane(bits, [&](int width, int low, int64_t offset) {
    const Words ones = all_words((1u << width) - 1);
    const uint32_t* slot = symbols;
    for (int dword = 0; dword < width; ++dword) {
      Words filled{};
      for (int shift = 0; shift < 32; shift += width, slot += 16)
        filled = filled | (((load_words(slot) >> low) & ones) << shift);
      store(out + offset + dword * 64, filled);
    }
  });
}

// The reverse.
inline void unpack_block(const uint8_t* in, int bits, uint32_t* symbols) {
  for_each_plane(bits, [&](int width, int low, int64_t offset) {
    const Words ones = all_words((1u << width) - 1);
    uint32_t* slot = symbols;
    for (int dword = 0; dword < width; ++dword) {
      const Words filled = load_words(in + offset + dword * 64);
      for (int shift = 0; shift < 32; shift += width, slot += 16) {
        const Words part = (filled >> shift) & ones;
        store(slot, low == 0 ? part : load_words(slot) | (part << low));
      }
    }
  });
}

// The first `count` symbols as a bit string, lowest bit first.
inline void pack_bit_string(const uint32_t* symbols, int count, int bits, uint8_t* out) {
  uint32_t pending = 0;
  int held = 0;
  for (int e = 0; e < count; ++e) {
    pending |= symbols[e] << held;
    for (held += bits; held >= 8; held -= 8, pending >>= 8) *out++ = static_cast<uint8_t>(pending);
  }
  if (held > 0) *out = static_cast<uint8_t>(pending);
}

// The reverse; the symbols behind `count` are zero.
inline void unpack_bit_string(const uint8_t* in, int count, int bits, uint32_t* symbols) {
  uint32_t pending = 0;
  int held = 0;
  for (int e = 0; e < count; ++e) {
    if (held < bits) {
      pending |= static_cast<uint32_t>(*in++) << held;
      held += 8;
    }
    symbols[e] = pending & ((1u << bits) - 1);
    pending >>= bits;
    held -= bits;
  }
  for (int e = count; e < kBlock; ++e) symbols[e] = 0;
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

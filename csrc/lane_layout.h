// Where the bits of a symbol lie: blocks of 512 components in sixteen dword lanes, split in planes
// of 8, 4, 2 and 1 bits, low bits first; a shorter last block is a plain bit string.
#pragma once
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kBlock = 512;

template <int Bits>
struct Planes {
  static constexpr int kCount = (Bits >> 3 & 1) + (Bits >> 2 & 1) + (Bits >> 1 & 1) + (Bits & 1);
  // Width of a plane: the set bits of Bits from the highest down.
  static constexpr int width(int plane) {
    for (int w = 8; w >= 1; w /= 2)
      if ((Bits & w) && plane-- == 0) return w;
    return 0;
  }
  // Lowest bit of the symbol a plane holds.
  static constexpr int low(int plane) {
    int sum = 0;
    for (int p = 0; p < plane; ++p) sum += width(p);
    return sum;
  }
  // Bytes of a block that precede a plane.
  static constexpr int offset(int plane) { return low(plane) * (kBlock / 8); }
};

constexpr int64_t block_bytes(int bits) { return int64_t{kBlock / 8} * bits; }

// Symbol of component e of a lane-sliced block.
template <int Bits>
SLIMGRAD_INLINE uint32_t lane_symbol(const uint8_t* block, int e) {
  uint32_t symbol = 0;
  for (int p = 0; p < Planes<Bits>::kCount; ++p) {
    const int w = Planes<Bits>::width(p), slots = 32 / w, slot = e / 16;
    uint32_t dword;
    __builtin_memcpy(&dword, block + Planes<Bits>::offset(p) + (slot / slots * 16 + e % 16) * 4, 4);
    symbol |= (dword >> (slot % slots * w) & ((1u << w) - 1)) << Planes<Bits>::low(p);
  }
  return symbol;
}

template <int Bits>
SLIMGRAD_INLINE void put_lane_symbol(uint8_t* block, int e, uint32_t symbol) {
  for (int p = 0; p < Planes<Bits>::kCount; ++p) {
    const int w = Planes<Bits>::width(p), slots = 32 / w, slot = e / 16;
    uint8_t* place = block + Planes<Bits>::offset(p) + (slot / slots * 16 + e % 16) * 4;
    uint32_t dword;
    __builtin_memcpy(&dword, place, 4);
    dword |= (symbol >> Planes<Bits>::low(p) & ((1u << w) - 1)) << (slot % slots * w);
    __builtin_memcpy(place, &dword, 4);
  }
}

// The first `count` symbols of a lane-sliced block as a bit string, lowest bit first.
template <int Bits>
void lanes_to_bit_string(const uint8_t* block, int count, uint8_t* out) {
  uint32_t pending = 0;
  int held = 0;
  for (int e = 0; e < count; ++e) {
    pending |= lane_symbol<Bits>(block, e) << held;
    for (held += Bits; held >= 8; held -= 8, pending >>= 8) *out++ = static_cast<uint8_t>(pending);
  }
  if (held > 0) *out = static_cast<uint8_t>(pending);
}

// The reverse, into a block of zeros.
template <int Bits>
void bit_string_to_lanes(const uint8_t* in, int count, uint8_t* block) {
  uint32_t pending = 0;
  int held = 0;
  for (int e = 0; e < count; ++e) {
    if (held < Bits) {
      pending |= static_cast<uint32_t>(*in++) << held;
      held += 8;
    }
    put_lane_symbol<Bits>(block, e, pending & ((1u << Bits) - 1));
    pending >>= Bits;
    held -= Bits;
  }
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Bit strings of code words, the first bit of a word first and the highest bit of a byte first.
#pragma once
#include <cstdint>

#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

SLIMGRAD_INLINE uint64_t big_endian(uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return __builtin_bswap64(word);
#else
  return word;
#endif
}
SLIMGRAD_INLINE uint64_t load_big_endian(const uint8_t* from) {
  uint64_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return big_endian(word);
}

// Appends words at `out`; writes up to 8 bytes behind the last whole byte.
struct BitWriter {
  uint8_t* out;
  uint64_t pending = 0;
  int64_t room = 63;  // less the bits of `pending` still to be written, at most 7 after a flush

  // The lowest `length` bits of `bits`; the others are 0.
  SLIMGRAD_INLINE void append(uint64_t bits, int64_t length) {
    pending = pending << length | bits;
    room -= length;
  }
  // There must be room left, 0 at least.
  SLIMGRAD_INLINE void flush() {
    const uint64_t word = big_endian(pending << 1 << room);
    __builtin_memcpy(out, &word, sizeof word);
    out -= (room >> 3) - 7;
    room |= 56;
  }
  // The first byte behind the words; the bits left over in the last one are 0.
  uint8_t* end() const { return out + (room < 63); }
};

// The 57 or more bits from bit `at` on, at the top of a word; zeros behind the end.
struct BitReader {
  const uint8_t* data;
  int64_t size;  // bytes

  SLIMGRAD_INLINE uint64_t peek(int64_t at) const {
    const int64_t byte = at >> 3;
    if (__builtin_expect(byte + 8 <= size, 1)) return load_big_endian(data + byte) << (at & 7);
    uint64_t word = 0;
    for (int64_t i = byte; i < byte + 8; ++i) word = word << 8 | (i < size ? data[i] : 0u);
    return word << (at & 7);
  }
  // Whether exactly the last byte holds bit `at` - 1 and the bits from `at` on are 0.
  bool ends_at(int64_t at) const {
    return (at + 7) >> 3 == size && ((at & 7) == 0 || (data[at >> 3] << (at & 7) & 0xFF) == 0);
  }
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Code words of positive integers: Elias gamma, delta and omega.
#pragma once
#include <cstdint>

#include "elias.h"
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kSegment = 65536;  // symbols whose gaps are counted from one beginning
constexpr int kLongestNumber = 17;   // digits of the longest gap, kSegment + 1

struct CodeWord {
  uint64_t bits;
  int length;
};

inline int digits(uint64_t k) { return 64 - __builtin_clzll(k); }

inline CodeWord joined(CodeWord a, CodeWord b) {
  return {a.bits << b.length | b.bits, a.length + b.length};
}

// Of k from 1 to 2^17 - 1.
inline CodeWord word_of(IntegerCode code, uint64_t k) {
  const int width = digits(k);
  if (code == IntegerCode::gamma) return {k, 2 * width - 1};
  if (code == IntegerCode::delta) {
    const uint64_t low = k & ((uint64_t{1} << (width - 1)) - 1);
    return joined(word_of(IntegerCode::gamma, width), {low, width - 1});
  }
  CodeWord word{0, 1};
  while (k > 1) {
    word = joined({k, digits(k)}, word);
    k = digits(k) - 1;
  }
  return word;
}

struct Number {
  uint64_t value;  // 0 when the bits are no code word of a number of at most 17 digits
  int length;
};

// The number whose code word stands at the top of `window`.
inline Number number_at(IntegerCode code, uint64_t window) {
  constexpr Number kNone{0, 0};
  if (code == IntegerCode::omega) {
    uint64_t value = 1;
    int length = 1;
    for (; window >> 63 != 0;) {
      const int width = static_cast<int>(value) + 1;
      if (width > kLongestNumber) return kNone;
      value = window >> (64 - width);
      window <<= width;
      length += width;
    }
    return {value, length};
  }
  const int zeros = window == 0 ? 64 : __builtin_clzll(window);
  if (zeros >= kLongestNumber) return kNone;
  const int width = 2 * zeros + 1;
  const uint64_t value = window >> (64 - width);
  if (code == IntegerCode::gamma) return {value, width};
  if (value > kLongestNumber) return kNone;
  const int low = static_cast<int>(value) - 1;
  return {uint64_t{1} << low | (low == 0 ? 0 : window << width >> (64 - low)), width + low};
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

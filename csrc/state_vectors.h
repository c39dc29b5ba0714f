// Eight vectors that stay in registers where there are enough: members, since an array that loops
// go over is kept in memory.
#pragma once
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kVectors = 8;

template <int I>
struct Number {
  static constexpr int value = I;
};

struct StateVectors {
  Words a, b, c, d, e, f, g, h;

  explicit SLIMGRAD_INLINE StateVectors(const uint32_t* from)
      : a(load_words(from)), b(load_words(from + 16)), c(load_words(from + 32)),
        d(load_words(from + 48)), e(load_words(from + 64)), f(load_words(from + 80)),
        g(load_words(from + 96)), h(load_words(from + 112)) {}
  SLIMGRAD_INLINE void store_to(uint32_t* to) const {
    store(to, a), store(to + 16, b), store(to + 32, c), store(to + 48, d);
    store(to + 64, e), store(to + 80, f), store(to + 96, g), store(to + 112, h);
  }
  // function(number, vector) from the last to the first.
  template <typename Function>
  SLIMGRAD_INLINE void each_down(const Function& function) {
    function(Number<7>(), h), function(Number<6>(), g), function(Number<5>(), f);
    function(Number<4>(), e), function(Number<3>(), d), function(Number<2>(), c);
    function(Number<1>(), b), function(Number<0>(), a);
  }
  // function(number of the first, vector, next vector) from the first pair to the last.
  template <typename Function>
  SLIMGRAD_INLINE void each_pair(const Function& function) {
    function(Number<0>(), a, b), function(Number<2>(), c, d);
    function(Number<4>(), e, f), function(Number<6>(), g, h);
  }
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

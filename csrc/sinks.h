// What becomes of a decoded vector of sixteen components.
#pragma once
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

struct Write {
  static constexpr bool kReads = false;
  SLIMGRAD_INLINE void operator()(float* out, Floats value) const { store(out, value); }
};
struct Add {
  static constexpr bool kReads = true;
  SLIMGRAD_INLINE void operator()(float* out, Floats value) const {
    store(out, load_floats(out) + value);
  }
};
struct AddScaled {
  static constexpr bool kReads = true;
  Floats alpha;
  SLIMGRAD_INLINE void operator()(float* out, Floats value) const {
    store(out, load_floats(out) + alpha * value);
  }
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

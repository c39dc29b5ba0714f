// What a decoder does with sixteen values: writes them, or adds them to what is there.
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

// Calls function(sink) with the sink for `add` and `alpha`.
template <typename Function>
SLIMGRAD_INLINE void with_sink(bool add, float alpha, const Function& function) {
  if (!add)
    function(Write{});
  else if (alpha == 1.0f)
    function(Add{});
  else
    function(AddScaled{all_floats(alpha)});
}

// The same for the `count` values of a block that may be shorter.
inline void write_or_add(const float* value, int count, bool add, float alpha, float* out) {
  if (add)
    for (int i = 0; i < count; ++i) out[i] += alpha * value[i];
  else
    __builtin_memcpy(out, value, static_cast<size_t>(count) * sizeof(float));
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

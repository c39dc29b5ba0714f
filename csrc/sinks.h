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
// Past the caches, for results that leave them anyway: a line is then not read before it is
// overwritten. Addresses must be multiples of 64, and end_stream() must follow on the same thread.
SLIMGRAD_INLINE void stream(float* out, FloatLeaf value) {
#if defined(SLIMGRAD_ISA_avx512)
  _mm512_stream_ps(out, value);
#elif defined(SLIMGRAD_ISA_avx2)
  _mm256_stream_ps(out, value);
#elif defined(__SSE2__)
  _mm_stream_ps(out, value);
#else
  Lanes<FloatLeaf>::store(out, value);
#endif
}
template <typename T>
SLIMGRAD_INLINE void stream(float* out, Pair<T> value) {
  stream(out, value.low);
  stream(out + sizeof(T) / sizeof(float), value.high);
}
SLIMGRAD_INLINE void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
struct Stream {
  static constexpr bool kReads = false;
  SLIMGRAD_INLINE void operator()(float* out, Floats value) const { stream(out, value); }
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

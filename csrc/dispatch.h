// Which instruction set the kernels use. Every kernel source is compiled once for each into the
// namespace slimgrad::baseline, slimgrad::avx2 or slimgrad::avx512.
#pragma once

namespace slimgrad {

enum class Isa { baseline = 0, avx2 = 1, avx512 = 2 };

Isa best_isa();                  // the widest that was compiled in and this processor runs
Isa current_isa();               // best_isa() unless set_isa() chose a narrower one
bool set_isa(const char* name);  // "baseline", "avx2", "avx512" or "auto"; false when not usable here
const char* isa_name(Isa isa);

}  // namespace slimgrad

// Calls `function` of the current instruction set.
#if defined(SLIMGRAD_HAS_avx512)
#define SLIMGRAD_DISPATCH(function, ...)                                  \
  (::slimgrad::current_isa() == ::slimgrad::Isa::avx512                   \
       ? ::slimgrad::avx512::function(__VA_ARGS__)                        \
       : ::slimgrad::current_isa() == ::slimgrad::Isa::avx2               \
             ? ::slimgrad::avx2::function(__VA_ARGS__)                    \
             : ::slimgrad::baseline::function(__VA_ARGS__))
// Declares `signature` in each instruction set's namespace.
#define SLIMGRAD_DECLARE(signature)   \
  namespace baseline { signature; }   \
  namespace avx2 { signature; }       \
  namespace avx512 { signature; }
#else
#define SLIMGRAD_DISPATCH(function, ...) ::slimgrad::baseline::function(__VA_ARGS__)
#define SLIMGRAD_DECLARE(signature) \
  namespace baseline { signature; }
#endif

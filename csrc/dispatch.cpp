#include "dispatch.h"

#include <atomic>
#include <cstring>
#include <initializer_list>

namespace slimgrad {
namespace {

// Asks for every feature that CMakeLists.txt compiles the instruction set's objects with.
bool usable(Isa isa) {
#if defined(SLIMGRAD_HAS_avx512)
  __builtin_cpu_init();
  if (isa != Isa::baseline && !(__builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")))
    return false;
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2");
  if (isa == Isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
#endif
  return isa == Isa::baseline;
}

std::atomic<int> chosen{-1};

}  // namespace

Isa best_isa() {
  static const Isa best = usable(Isa::avx512) ? Isa::avx512
                          : usable(Isa::avx2) ? Isa::avx2
                                              : Isa::baseline;
  return best;
}

Isa current_isa() {
  const int isa = chosen.load(std::memory_order_relaxed);
  return isa < 0 ? best_isa() : static_cast<Isa>(isa);
}

bool set_isa(const char* name) {
  if (std::strcmp(name, "auto") == 0) {
    chosen = -1;
    return true;
  }
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (std::strcmp(name, isa_name(isa)) == 0) {
      if (!usable(isa)) return false;
      chosen = static_cast<int>(isa);
      return true;
    }
  }
  return false;
}

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx512: return "avx512";
    case Isa::avx2: return "avx2";
    default: return "baseline";
  }
}

}  // namespace slimgrad

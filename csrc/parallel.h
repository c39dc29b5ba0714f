// Runs a loop on torch's own thread pool, whose entry point Python hands over at import.
#pragma once
#include <cstdint>
#include <type_traits>

namespace slimgrad {

using RangeFunction = void (*)(int64_t begin, int64_t end, void* context);
// The stable C entry point exported by libtorch_cpu as `torch_parallel_for`; 0 when all went well.
using TorchParallelFor = int32_t (*)(int64_t begin, int64_t end, int64_t grain, RangeFunction, void*);

void set_torch_parallel_for(uintptr_t address);

// Calls function on disjoint ranges that cover [begin, end). Serial when no pool was handed over,
// when the range is no longer than grain, or when `serial` is set by the caller. Throws when the pool
// fails.
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFunction function, void* context,
                  bool serial);

template <typename Function>
void parallel_ranges(int64_t begin, int64_t end, int64_t grain, bool serial, Function&& function) {
  using Plain = std::remove_reference_t<Function>;
  parallel_for(
      begin, end, grain,
      [](int64_t from, int64_t to, void* context) { (*static_cast<Plain*>(context))(from, to); },
      const_cast<void*>(static_cast<const void*>(&function)), serial);
}

}  // namespace slimgrad

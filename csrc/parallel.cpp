#include "parallel.h"

#include <stdexcept>

namespace slimgrad {
namespace {
TorchParallelFor torch_parallel_for_entry = nullptr;
}

void set_torch_parallel_for(uintptr_t address) {
  torch_parallel_for_entry = reinterpret_cast<TorchParallelFor>(address);
}

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFunction function, void* context,
                  bool serial) {
  if (begin >= end) return;
  if (serial || torch_parallel_for_entry == nullptr || end - begin <= grain) {
    function(begin, end, context);
    return;
  }
  // Some ranges may have run, so that running them here instead could add a vector twice.
  if (torch_parallel_for_entry(begin, end, grain, function, context) != 0)
    throw std::runtime_error("torch's thread pool failed; the result is not usable");
}

}  // namespace slimgrad

#include "parallel.h"

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
  torch_parallel_for_entry(begin, end, grain, function, context);
}

}  // namespace slimgrad

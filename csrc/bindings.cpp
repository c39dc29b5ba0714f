// The Python module slimgrad.kernels._native. No algorithm lives here.
#include <nanobind/nanobind.h>

#include "dispatch.h"
#include "parallel.h"

namespace nb = nanobind;

namespace slimgrad {
void register_positions(nb::module_& module);
void register_quantize(nb::module_& module);
void register_sign_mask(nb::module_& module);
void register_dither(nb::module_& module);
void register_packing(nb::module_& module);
void register_rotation(nb::module_& module);
void register_summing(nb::module_& module);
void register_topone(nb::module_& module);
void register_elias(nb::module_& module);
void register_huffman(nb::module_& module);
void register_buckets(nb::module_& module);
void register_rans(nb::module_& module);
void register_crc32(nb::module_& module);
void register_thin(nb::module_& module);
void register_topk(nb::module_& module);
}  // namespace slimgrad

NB_MODULE(_native, module) {
  using namespace slimgrad;
  module.def("set_torch_parallel_for", &set_torch_parallel_for, nb::arg("address"));
  module.def("isa", [] { return isa_name(current_isa()); });
  module.def("best_isa", [] { return isa_name(best_isa()); });
  module.def("set_isa", &set_isa, nb::arg("name"));
  register_positions(module);
  register_quantize(module);
  register_sign_mask(module);
  register_dither(module);
  register_packing(module);
  register_rotation(module);
  register_summing(module);
  register_topone(module);
  register_elias(module);
  register_huffman(module);
  register_buckets(module);
  register_rans(module);
  register_crc32(module);
  register_thin(module);
  register_topk(module);
}

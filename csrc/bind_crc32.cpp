// Python binding of the checksum.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "crc32.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

uint32_t checksum(const Bytes& data, uint32_t start) {
  nb::gil_scoped_release release;
  return crc32(start, data.data(), data.size());
}

}  // namespace

void register_crc32(nb::module_& module) {
  module.def("crc32", &checksum, nb::arg("data").noconvert(), nb::arg("start"));
}
}  // namespace slimgrad

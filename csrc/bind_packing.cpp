// Python bindings of the packing kernels. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "packing.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void pack(const Vector<const uint8_t>& symbols, int bits, bool serial,
          const Vector<uint8_t>& packed) {
  const PackArgs args{symbols.data(), static_cast<int64_t>(symbols.size()), bits, serial,
                      packed.data()};
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(pack_symbols, args);
}

void unpack(const Vector<const uint8_t>& packed, int bits, bool serial,
            const Vector<uint8_t>& symbols) {
  const UnpackArgs args{packed.data(), static_cast<int64_t>(symbols.size()), bits, serial,
                        symbols.data()};
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(unpack_symbols, args);
}

}  // namespace

void register_packing(nb::module_& module) {
  module.def("pack_symbols", &pack, nb::arg("symbols").noconvert(), nb::arg("bits"),
             nb::arg("serial"), nb::arg("packed").noconvert());
  module.def("unpack_symbols", &unpack, nb::arg("packed").noconvert(), nb::arg("bits"),
             nb::arg("serial"), nb::arg("symbols").noconvert());
}
}  // namespace slimgrad

// Python bindings of the Elias codes. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "elias.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

EliasArgs arguments(const Vector<const uint8_t>& in, int64_t n, int bits, int code,
                    const Vector<uint8_t>& out) {
  return {static_cast<IntegerCode>(code), bits, n, in.data(), static_cast<int64_t>(in.size()),
          out.data()};
}

int64_t encode(const Vector<const uint8_t>& packed, int64_t n, int bits, int code,
               const Vector<uint8_t>& payload) {
  const EliasArgs args = arguments(packed, n, bits, code, payload);
  nb::gil_scoped_release release;
  return SLIMGRAD_DISPATCH(elias_encode, args);
}

int64_t decode(const Vector<const uint8_t>& payload, int64_t n, int bits, int code,
               const Vector<uint8_t>& packed) {
  const EliasArgs args = arguments(payload, n, bits, code, packed);
  nb::gil_scoped_release release;
  return SLIMGRAD_DISPATCH(elias_decode, args);
}

}  // namespace

void register_elias(nb::module_& module) {
  // No conversions: a converted output would be written and thrown away.
  module.def("elias_encode", &encode, nb::arg("packed").noconvert(), nb::arg("n"), nb::arg("bits"),
             nb::arg("code"), nb::arg("payload").noconvert());
  module.def("elias_decode", &decode, nb::arg("payload").noconvert(), nb::arg("n"),
             nb::arg("bits"), nb::arg("code"), nb::arg("packed").noconvert());
}

}  // namespace slimgrad

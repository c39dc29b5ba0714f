// Python entries of the sign masks. Sizes are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "sign_mask.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void pack(const Vector<const float>& values, const Vector<uint8_t>& bits) {
  const MaskProblem t = {values.data(), bits.data(), nullptr,
                         static_cast<int64_t>(values.size()), false};
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(pack_positive, t);
}

void mask(const Vector<const float>& values, const Vector<uint8_t>& bits,
          const Vector<float>& out) {
  const MaskProblem t = {values.data(), bits.data(), out.data(),
                         static_cast<int64_t>(values.size()), false};
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(apply_mask, t);
}

}  // namespace

void register_sign_mask(nb::module_& module) {
  module.def("pack_positive", &pack, nb::arg("values").noconvert(), nb::arg("bits").noconvert());
  module.def("apply_mask", &mask, nb::arg("values").noconvert(), nb::arg("bits").noconvert(),
             nb::arg("out").noconvert());
}

}  // namespace slimgrad

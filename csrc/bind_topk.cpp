// Python binding of the selection of the largest magnitudes. Values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "topk.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void topk_of(const Vector<const float>& vector, const Vector<int64_t>& places) {
  TopKArgs args{};
  args.vector = vector.data();
  args.n = static_cast<int64_t>(vector.size());
  args.k = static_cast<int64_t>(places.size());
  args.places = places.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(topk_places, args);
}

}  // namespace

void register_topk(nb::module_& module) {
  module.def("topk_places", &topk_of, nb::arg("vector").noconvert(), nb::arg("places").noconvert());
}
}  // namespace slimgrad

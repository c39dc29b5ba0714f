// Python bindings of the thin products. Shapes are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "thin.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void thin(const Matrix<const float>& matrix, const Matrix<const float>& factor, bool transposed,
          const Matrix<float>& out) {
  ThinArgs args{};
  args.matrix = matrix.data();
  args.rows = static_cast<int64_t>(matrix.shape(0));
  args.columns = static_cast<int64_t>(matrix.shape(1));
  args.rank = static_cast<int64_t>(transposed ? factor.shape(1) : factor.shape(0));
  args.factor = factor.data();
  args.out = out.data();
  nb::gil_scoped_release release;
  if (transposed) {
    SLIMGRAD_DISPATCH(thin_product_transposed, args);
  } else {
    SLIMGRAD_DISPATCH(thin_product, args);
  }
}

}  // namespace

void register_thin(nb::module_& module) {
  module.def("thin_product", &thin, nb::arg("matrix").noconvert(), nb::arg("factor").noconvert(),
             nb::arg("transposed"), nb::arg("out").noconvert());
}
}  // namespace slimgrad

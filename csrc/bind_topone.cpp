// Python entry of the top-1 filter gradient.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <new>
#include <stdexcept>
#include <utility>

#include "topone.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

using Input = nb::ndarray<const float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Pair = std::pair<int64_t, int64_t>;

// Arrays arrive as they lie in memory: (n, h, w, c) where the matching flag is set, else
// (n, c, h, w). The caller guarantees that a padded sample has fewer than 2^31 elements.
void topone(const Input& x, const Input& grad_out, const Output& out, bool x_last, bool grad_last,
            bool out_last, Pair stride, Pair padding, Pair dilation, int64_t groups, float scale,
            bool serial) {
  const auto size = [](const auto& array, bool last, int axis) {
    constexpr int kWhereLast[4] = {0, 3, 1, 2};
    return static_cast<int64_t>(array.shape(last ? kWhereLast[axis] : axis));
  };
  TopOneProblem t = {};
  t.x = x.data();
  t.grad_out = grad_out.data();
  t.out = out.data();
  t.x_last = x_last, t.grad_last = grad_last, t.out_last = out_last;
  t.n = size(x, x_last, 0), t.c = size(x, x_last, 1);
  t.h = size(x, x_last, 2), t.w = size(x, x_last, 3);
  t.k = size(grad_out, grad_last, 1), t.p = size(grad_out, grad_last, 2);
  t.q = size(grad_out, grad_last, 3);
  t.r = size(out, out_last, 2), t.s = size(out, out_last, 3);
  t.stride_h = stride.first, t.stride_w = stride.second;
  t.padding_h = padding.first, t.padding_w = padding.second;
  t.dilation_h = dilation.first, t.dilation_w = dilation.second;
  t.groups = groups, t.scale = scale, t.serial = serial;
  if (groups < 1 || t.c % groups != 0 || t.k % groups != 0 || size(out, out_last, 0) != t.k ||
      size(out, out_last, 1) != t.c / groups || size(grad_out, grad_last, 0) != t.n)
    throw std::invalid_argument("topone_weight_grad: the shapes do not belong together");
  bool done;
  {
    nb::gil_scoped_release release;
    done = SLIMGRAD_DISPATCH(topone_weight_grad, t);
  }
  if (!done) throw std::bad_alloc();
}

}  // namespace

void register_topone(nb::module_& module) {
  // No conversions: a converted `out` would be written and thrown away.
  module.def("topone_weight_grad", &topone, nb::arg("x").noconvert(),
             nb::arg("grad_out").noconvert(), nb::arg("out").noconvert(), nb::arg("x_last"),
             nb::arg("grad_last"), nb::arg("out_last"), nb::arg("stride"), nb::arg("padding"),
             nb::arg("dilation"), nb::arg("groups"), nb::arg("scale"), nb::arg("serial"));
}

}  // namespace slimgrad

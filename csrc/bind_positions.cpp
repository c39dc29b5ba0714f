// Python entries of the position kernel and of the choice of positions.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <new>
#include <utility>

#include "positions.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T, int Dims>
using Array = nb::ndarray<T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;
using Pair = std::pair<int64_t, int64_t>;

// Shapes and values are checked in Python. `position` and `weight` are unused when `all` is set;
// an empty `mean` stands for zeros.
void weight_grad(const Array<const float, 4>& x, const Array<const float, 4>& grad_out,
                 const Array<const int32_t, 1>& position, const Array<const float, 1>& weight,
                 bool all, const Array<const float, 2>& mean, const Array<float, 4>& out,
                 Pair stride, Pair padding, Pair dilation, int64_t groups, bool serial) {
  const auto size = [](const auto& array, int axis) {
    return static_cast<int64_t>(array.shape(axis));
  };
  PositionProblem t = {};
  t.x = x.data(), t.grad_out = grad_out.data(), t.out = out.data();
  t.n = size(x, 0), t.h = size(x, 1), t.w = size(x, 2), t.c = size(x, 3);
  t.p = size(grad_out, 1), t.q = size(grad_out, 2), t.k = size(grad_out, 3);
  t.r = size(out, 1), t.s = size(out, 2);
  t.position = all ? nullptr : position.data();
  t.weight = all ? nullptr : weight.data();
  t.mean = mean.size() == 0 ? nullptr : mean.data();
  t.count = all ? t.n * t.p * t.q : size(position, 0);
  t.stride_h = stride.first, t.stride_w = stride.second;
  t.padding_h = padding.first, t.padding_w = padding.second;
  t.dilation_h = dilation.first, t.dilation_w = dilation.second;
  t.groups = groups, t.serial = serial;
  bool done;
  {
    nb::gil_scoped_release release;
    done = SLIMGRAD_DISPATCH(position_weight_grad, t);
  }
  if (!done) throw std::bad_alloc();
}

void norms(const Array<const float, 2>& matrix, const Array<float, 1>& norm, bool serial) {
  const RowNormProblem t = {matrix.data(), static_cast<int64_t>(matrix.shape(0)),
                            static_cast<int64_t>(matrix.shape(1)), norm.data(), serial};
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(row_norms, t);
}

void centred_norms(const Array<const float, 3>& rows, const Array<float, 2>& mean,
                   const Array<float, 2>& norm, bool serial) {
  const CentredNormProblem t = {rows.data(), static_cast<int64_t>(rows.shape(0)),
                                static_cast<int64_t>(rows.shape(1)),
                                static_cast<int64_t>(rows.shape(2)), mean.data(), norm.data(),
                                serial};
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(centred_row_norms, t);
}

void sums_of_patches(const Array<const float, 4>& x, const Array<float, 4>& sum, Pair output,
                     Pair stride, Pair padding, Pair dilation, bool serial) {
  PatchSumProblem t = {};
  t.x = x.data(), t.sum = sum.data();
  t.n = static_cast<int64_t>(x.shape(0)), t.h = static_cast<int64_t>(x.shape(1));
  t.w = static_cast<int64_t>(x.shape(2)), t.c = static_cast<int64_t>(x.shape(3));
  t.p = output.first, t.q = output.second;
  t.r = static_cast<int64_t>(sum.shape(1)), t.s = static_cast<int64_t>(sum.shape(2));
  t.stride_h = stride.first, t.stride_w = stride.second;
  t.padding_h = padding.first, t.padding_w = padding.second;
  t.dilation_h = dilation.first, t.dilation_w = dilation.second;
  t.serial = serial;
  bool done;
  {
    nb::gil_scoped_release release;
    done = SLIMGRAD_DISPATCH(patch_sums, t);
  }
  if (!done) throw std::bad_alloc();
}

int64_t sample(const Array<const float, 1>& score, double wanted, double start,
               const Array<int32_t, 1>& position, const Array<float, 1>& weight) {
  const SampleProblem t = {score.data(), static_cast<int64_t>(score.shape(0)), wanted, start,
                           position.data(), weight.data()};
  nb::gil_scoped_release release;
  return SLIMGRAD_DISPATCH(systematic_sample, t);
}

}  // namespace

void register_positions(nb::module_& module) {
  module.def("position_weight_grad", &weight_grad, nb::arg("x").noconvert(),
             nb::arg("grad_out").noconvert(), nb::arg("position").noconvert(),
             nb::arg("weight").noconvert(), nb::arg("all"), nb::arg("mean").noconvert(), nb::arg("out").noconvert(),
             nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"),
             nb::arg("serial"));
  module.def("row_norms", &norms, nb::arg("matrix").noconvert(), nb::arg("norm").noconvert(),
             nb::arg("serial"));
  module.def("centred_row_norms", &centred_norms, nb::arg("rows").noconvert(),
             nb::arg("mean").noconvert(), nb::arg("norm").noconvert(), nb::arg("serial"));
  module.def("patch_sums", &sums_of_patches, nb::arg("x").noconvert(), nb::arg("sum").noconvert(),
             nb::arg("output"), nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"),
             nb::arg("serial"));
  module.def("systematic_sample", &sample, nb::arg("score").noconvert(), nb::arg("wanted"),
             nb::arg("start"), nb::arg("position").noconvert(), nb::arg("weight").noconvert());
}

}  // namespace slimgrad

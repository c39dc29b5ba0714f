// Python bindings of the dither kernels. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "dither.h"
#include "quantize.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void dither_vector(const Vector<const float>& vector, double step_rms, int bits,
                   int64_t bucket_size, uint64_t key, bool serial, const Vector<float>& steps,
                   const Vector<uint8_t>& packed) {
  QuantizeArgs args{};
  args.vector = vector.data();
  args.n = static_cast<int64_t>(vector.size());
  args.bucket_size = bucket_size;
  args.magnitudes = (1 << (bits - 1)) - 1;
  args.bits = bits;
  args.grid = Grid::integer;
  args.norm = Norm::step;
  args.step_rms = step_rms;
  args.key = key;
  args.serial = serial;
  args.scales = steps.data();
  args.packed = packed.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(quantize, args);
}

void undither_vector(const Vector<const uint8_t>& packed, const Vector<const float>& steps,
                     int bits, int64_t bucket_size, uint64_t key, bool add, float alpha,
                     bool serial, const Vector<float>& out) {
  UnditherArgs args{};
  args.packed = packed.data();
  args.steps = steps.data();
  args.n = static_cast<int64_t>(out.size());
  args.bucket_size = bucket_size;
  args.bits = bits;
  args.key = key;
  args.add = add;
  args.alpha = alpha;
  args.serial = serial;
  args.out = out.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(undither, args);
}

}  // namespace

void register_dither(nb::module_& module) {
  module.def("dither", &dither_vector, nb::arg("vector").noconvert(), nb::arg("step_rms"),
             nb::arg("bits"), nb::arg("bucket_size"), nb::arg("key"), nb::arg("serial"),
             nb::arg("steps").noconvert(), nb::arg("packed").noconvert());
  module.def("undither", &undither_vector, nb::arg("packed").noconvert(),
             nb::arg("steps").noconvert(), nb::arg("bits"), nb::arg("bucket_size"), nb::arg("key"),
             nb::arg("add"), nb::arg("alpha"), nb::arg("serial"), nb::arg("out").noconvert());
}
}  // namespace slimgrad

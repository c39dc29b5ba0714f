// Python bindings of the quantize kernels. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "quantize.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void quantize_vector(const Vector<const float>& vector, const Vector<const float>& levels,
                     int64_t bucket_size, int bits, int grid, int norm, uint64_t key, bool serial,
                     const Vector<float>& scales, const Vector<uint8_t>& packed) {
  QuantizeArgs args{};
  args.vector = vector.data();
  args.n = static_cast<int64_t>(vector.size());
  args.bucket_size = bucket_size;
  args.levels = levels.data();
  args.magnitudes = static_cast<int>(levels.size()) - 1;
  args.bits = bits;
  args.grid = static_cast<Grid>(grid);
  args.norm = static_cast<Norm>(norm);
  args.key = key;
  args.serial = serial;
  args.scales = scales.data();
  args.packed = packed.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(quantize, args);
}

void dequantize_vector(const Vector<const uint8_t>& packed, const Vector<const float>& scales,
                       const Vector<const float>& values, int64_t bucket_size, int bits, bool add,
                       float alpha, bool serial, const Vector<float>& out) {
  DequantizeArgs args{};
  args.packed = packed.data();
  args.scales = scales.data();
  args.n = static_cast<int64_t>(out.size());
  args.bucket_size = bucket_size;
  args.values = values.data();
  args.bits = bits;
  args.add = add;
  args.alpha = alpha;
  args.serial = serial;
  args.out = out.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(dequantize, args);
}

}  // namespace

void register_quantize(nb::module_& module) {
  // No conversions: a converted output would be written and thrown away.
  module.def("quantize", &quantize_vector, nb::arg("vector").noconvert(),
             nb::arg("levels").noconvert(), nb::arg("bucket_size"), nb::arg("bits"),
             nb::arg("grid"), nb::arg("norm"), nb::arg("key"), nb::arg("serial"),
             nb::arg("scales").noconvert(), nb::arg("packed").noconvert());
  module.def("dequantize", &dequantize_vector, nb::arg("packed").noconvert(),
             nb::arg("scales").noconvert(), nb::arg("values").noconvert(), nb::arg("bucket_size"),
             nb::arg("bits"), nb::arg("add"), nb::arg("alpha"), nb::arg("serial"),
             nb::arg("out").noconvert());
}
}  // namespace slimgrad

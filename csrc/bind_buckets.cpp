// Python bindings of the bucket kernels. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "buckets.h"
#include "dispatch.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

BucketArgs bucket_args(const Vector<const float>& vector, int64_t bucket_size, int norm,
                       bool serial, const Vector<float>& scales) {
  BucketArgs args{};
  args.vector = vector.data();
  args.n = static_cast<int64_t>(vector.size());
  args.bucket_size = bucket_size;
  args.norm = static_cast<Norm>(norm);
  args.serial = serial;
  args.scales = scales.data();
  return args;
}

void scales_of_vector(const Vector<const float>& vector, int64_t bucket_size, int norm, bool serial,
                      const Vector<float>& scales) {
  const BucketArgs args = bucket_args(vector, bucket_size, norm, serial, scales);
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(bucket_scales, args);
}

void signs_of_vector(const Vector<const float>& vector, int64_t bucket_size, int norm, bool serial,
                     const Vector<float>& scales, const Vector<uint8_t>& packed) {
  BucketArgs args = bucket_args(vector, bucket_size, norm, serial, scales);
  args.packed = packed.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(quantize_signs, args);
}

void without_zero(const Vector<const float>& vector, const Vector<const float>& levels,
                  int64_t bucket_size, int bits, int norm, uint64_t key, bool serial,
                  const Vector<float>& scales, const Vector<uint8_t>& packed) {
  QuantizeArgs args{};
  args.vector = vector.data();
  args.n = static_cast<int64_t>(vector.size());
  args.bucket_size = bucket_size;
  args.levels = levels.data();
  args.magnitudes = static_cast<int>(levels.size()) - 1;
  args.bits = bits;
  args.grid = Grid::table;
  args.norm = static_cast<Norm>(norm);
  args.key = key;
  args.serial = serial;
  args.scales = scales.data();
  args.packed = packed.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(quantize_no_zero, args);
}

}  // namespace

void register_buckets(nb::module_& module) {
  // No conversions: a converted output would be written and thrown away.
  module.def("bucket_scales", &scales_of_vector, nb::arg("vector").noconvert(),
             nb::arg("bucket_size"), nb::arg("norm"), nb::arg("serial"),
             nb::arg("scales").noconvert());
  module.def("quantize_signs", &signs_of_vector, nb::arg("vector").noconvert(),
             nb::arg("bucket_size"), nb::arg("norm"), nb::arg("serial"),
             nb::arg("scales").noconvert(), nb::arg("packed").noconvert());
  module.def("quantize_no_zero", &without_zero, nb::arg("vector").noconvert(),
             nb::arg("levels").noconvert(), nb::arg("bucket_size"), nb::arg("bits"),
             nb::arg("norm"), nb::arg("key"), nb::arg("serial"), nb::arg("scales").noconvert(),
             nb::arg("packed").noconvert());
}
}  // namespace slimgrad

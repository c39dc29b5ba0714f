// Python bindings of the rotating kernels. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "rotation.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void quantize_rotated(const Vector<const float>& vector, const Vector<const float>& levels,
                      const Vector<const int32_t>& cells, int bits, float spread, uint64_t key,
                      bool serial, const Vector<float>& scales, const Vector<uint8_t>& packed) {
  RotateQuantizeArgs args{};
  args.vector = vector.data();
  args.n = static_cast<int64_t>(vector.size());
  args.levels = levels.data();
  args.cells = cells.data();
  args.bits = bits;
  args.spread = spread;
  args.key = key;
  args.serial = serial;
  args.scales = scales.data();
  args.packed = packed.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(rotate_quantize, args);
}

void dequantize_rotated(const Vector<const uint8_t>& packed, const Vector<const float>& scales,
                        const Vector<const float>& values, int bits, uint64_t key, bool add,
                        float alpha, bool serial, const Vector<float>& out) {
  RotateDequantizeArgs args{};
  args.packed = packed.data();
  args.scales = scales.data();
  args.n = static_cast<int64_t>(out.size());
  args.values = values.data();
  args.bits = bits;
  args.key = key;
  args.add = add;
  args.alpha = alpha;
  args.serial = serial;
  args.out = out.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(rotate_dequantize, args);
}

}  // namespace

void register_rotation(nb::module_& module) {
  // No conversions: a converted output would be written and thrown away.
  module.def("rotate_quantize", &quantize_rotated, nb::arg("vector").noconvert(),
             nb::arg("levels").noconvert(), nb::arg("cells").noconvert(), nb::arg("bits"),
             nb::arg("spread"), nb::arg("key"), nb::arg("serial"), nb::arg("scales").noconvert(),
             nb::arg("packed").noconvert());
  module.def("rotate_dequantize", &dequantize_rotated, nb::arg("packed").noconvert(),
             nb::arg("scales").noconvert(), nb::arg("values").noconvert(), nb::arg("bits"),
             nb::arg("key"), nb::arg("add"), nb::arg("alpha"), nb::arg("serial"),
             nb::arg("out").noconvert());
}
}  // namespace slimgrad

// Python bindings of sums over messages. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "summing.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Messages are given one by one; their arrays must live until the sum is done.
class MessageSum {
 public:
  void add_levels(const Vector<const uint8_t>& packed, const Vector<const float>& scales,
                  const Vector<const float>& values, int bits, int64_t bucket_size) {
    Summand message{};
    message.transform = Transform::none;
    message.levels.packed = packed.data();
    message.levels.scales = scales.data();
    message.levels.values = values.data();
    message.levels.bits = bits;
    message.levels.bucket_size = bucket_size;
    args_.messages.push_back(message);
  }

  void add_dithered(const Vector<const uint8_t>& packed, const Vector<const float>& steps, int bits,
                    int64_t bucket_size, uint64_t key) {
    Summand message{};
    message.transform = Transform::dither;
    message.dither.packed = packed.data();
    message.dither.steps = steps.data();
    message.dither.bits = bits;
    message.dither.bucket_size = bucket_size;
    message.dither.key = key;
    args_.messages.push_back(message);
  }

  void add_rotated(const Vector<const uint8_t>& packed, const Vector<const float>& scales,
                   const Vector<const float>& values, int bits, uint64_t key) {
    Summand message{};
    message.transform = Transform::rotation;
    message.rotation.packed = packed.data();
    message.rotation.scales = scales.data();
    message.rotation.values = values.data();
    message.rotation.bits = bits;
    message.rotation.key = key;
    args_.messages.push_back(message);
  }

  void run(const Vector<float>& out, bool serial) {
    args_.n = static_cast<int64_t>(out.size());
    args_.out = out.data();
    args_.serial = serial;
    nb::gil_scoped_release release;
    SLIMGRAD_DISPATCH(sum_messages, args_);
  }

 private:
  SumArgs args_{};
};

}  // namespace

void register_summing(nb::module_& module) {
  nb::class_<MessageSum>(module, "MessageSum")
      .def(nb::init<>())
      .def("add_levels", &MessageSum::add_levels, nb::arg("packed").noconvert(),
           nb::arg("scales").noconvert(), nb::arg("values").noconvert(), nb::arg("bits"),
           nb::arg("bucket_size"))
      .def("add_dithered", &MessageSum::add_dithered, nb::arg("packed").noconvert(),
           nb::arg("steps").noconvert(), nb::arg("bits"), nb::arg("bucket_size"), nb::arg("key"))
      .def("add_rotated", &MessageSum::add_rotated, nb::arg("packed").noconvert(),
           nb::arg("scales").noconvert(), nb::arg("values").noconvert(), nb::arg("bits"),
           nb::arg("key"))
      .def("run", &MessageSum::run, nb::arg("out").noconvert(), nb::arg("serial"));
}
}  // namespace slimgrad

// Python bindings of the prefix codes. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "dispatch.h"
#include "huffman.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

HuffmanArgs arguments(const Vector<const uint8_t>& in, int64_t n, int bits, bool pairs,
                      uint8_t* out, size_t out_bytes) {
  return {n,   bits, pairs, in.data(), static_cast<int64_t>(in.size()),
          out, static_cast<int64_t>(out_bytes)};
}

void count(const Vector<const uint8_t>& packed, int64_t n, int bits, bool pairs, int64_t every,
           const Vector<int64_t>& counts) {
  const HuffmanArgs args = arguments(packed, n, bits, pairs, nullptr, 0);
  int64_t* to = counts.data();
  nb::gil_scoped_release release;
  SLIMGRAD_DISPATCH(huffman_count, args, every, to);
}

int64_t encode(const Vector<const uint8_t>& packed, int64_t n, int bits, bool pairs,
               const Vector<const uint8_t>& lengths, int64_t head,
               const Vector<uint8_t>& payload) {
  const HuffmanArgs args = arguments(packed, n, bits, pairs, payload.data(), payload.size());
  const uint8_t* from = lengths.data();
  nb::gil_scoped_release release;
  return SLIMGRAD_DISPATCH(huffman_encode, args, from, head);
}

int64_t decode(const Vector<const uint8_t>& payload, int64_t n, int bits, bool pairs,
               const Vector<uint8_t>& packed) {
  const HuffmanArgs args = arguments(payload, n, bits, pairs, packed.data(), packed.size());
  nb::gil_scoped_release release;
  return SLIMGRAD_DISPATCH(huffman_decode, args);
}

}  // namespace

void register_huffman(nb::module_& module) {
  // No conversions: a converted output would be written and thrown away.
  module.def("huffman_count", &count, nb::arg("packed").noconvert(), nb::arg("n"),
             nb::arg("bits"), nb::arg("pairs"), nb::arg("every"), nb::arg("counts").noconvert());
  module.def("huffman_encode", &encode, nb::arg("packed").noconvert(), nb::arg("n"),
             nb::arg("bits"), nb::arg("pairs"), nb::arg("lengths").noconvert(), nb::arg("head"),
             nb::arg("payload").noconvert());
  module.def("huffman_decode", &decode, nb::arg("payload").noconvert(), nb::arg("n"),
             nb::arg("bits"), nb::arg("pairs"), nb::arg("packed").noconvert());
}

}  // namespace slimgrad

// Python bindings of the entropy coders. Shapes and values are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "rans.h"
#include "symbol_counts.h"

namespace nb = nanobind;

namespace slimgrad {
namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

CodeArgs code_args(int64_t n, int bits, const Vector<const uint16_t>& frequencies, bool serial) {
  return {n, bits, frequencies.data(), serial};
}

template <bool kContext>
int64_t encode(const Vector<const uint8_t>& packed, int64_t n, int bits,
               const Vector<const uint16_t>& frequencies, bool serial, const Vector<uint8_t>& out,
               int64_t room, const Vector<uint32_t>& words, const Vector<int64_t>& places) {
  EncodeArgs args{code_args(n, bits, frequencies, serial), packed.data(), out.data(), room,
                  words.data(), places.data()};
  nb::gil_scoped_release release;
  return kContext ? SLIMGRAD_DISPATCH(context_encode, args) : SLIMGRAD_DISPATCH(rans_encode, args);
}

template <bool kContext>
void decode(const Vector<const uint8_t>& payload, const Vector<const int64_t>& places, int64_t n,
            int bits, const Vector<const uint16_t>& frequencies, bool serial,
            const Vector<uint8_t>& packed, const Vector<uint8_t>& failed) {
  DecodeArgs args{code_args(n, bits, frequencies, serial), payload.data(), places.data(),
                  packed.data(), failed.data()};
  nb::gil_scoped_release release;
  kContext ? SLIMGRAD_DISPATCH(context_decode, args) : SLIMGRAD_DISPATCH(rans_decode, args);
}

template <bool kContext>
void count_symbols(const Vector<const uint8_t>& packed, int64_t n, int bits, int64_t stride,
                   const Vector<int64_t>& counts) {
  const CountArgs args{packed.data(), n, bits, stride, counts.data()};
  nb::gil_scoped_release release;
  kContext ? SLIMGRAD_DISPATCH(context_counts, args) : SLIMGRAD_DISPATCH(symbol_counts, args);
}

template <bool kContext>
void register_coder(nb::module_& module, const char* encoder, const char* decoder,
                    const char* counter) {
  module.def(encoder, &encode<kContext>, nb::arg("packed").noconvert(), nb::arg("n"),
             nb::arg("bits"), nb::arg("frequencies").noconvert(), nb::arg("serial"),
             nb::arg("out").noconvert(), nb::arg("room"), nb::arg("words").noconvert(),
             nb::arg("places").noconvert());
  module.def(decoder, &decode<kContext>, nb::arg("payload").noconvert(),
             nb::arg("places").noconvert(), nb::arg("n"), nb::arg("bits"),
             nb::arg("frequencies").noconvert(), nb::arg("serial"), nb::arg("packed").noconvert(),
             nb::arg("failed").noconvert());
  module.def(counter, &count_symbols<kContext>, nb::arg("packed").noconvert(), nb::arg("n"),
             nb::arg("bits"), nb::arg("stride"), nb::arg("counts").noconvert());
}

}  // namespace

void register_rans(nb::module_& module) {
  register_coder<false>(module, "rans_encode", "rans_decode", "symbol_counts");
  register_coder<true>(module, "context_encode", "context_decode", "context_counts");
}
}  // namespace slimgrad

// A multiplication of polynomials moves 16 or 64 bytes forward at a time, modulo the polynomial; what
// is left goes byte by byte, and so does all where there is no such instruction.
#include "crc32.h"

#include "dispatch.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace slimgrad {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;

// r * x modulo the polynomial, where bit 31 holds the coefficient of x^0.
constexpr uint32_t times_x(uint32_t r) { return r >> 1 ^ ((r & 1) != 0 ? kPolynomial : 0); }

struct Table {
  uint32_t of[256] = {};
  constexpr Table() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      of[byte] = byte;
      for (int bit = 0; bit < 8; ++bit) of[byte] = times_x(of[byte]);
    }
  }
};
constexpr Table kTable;

// Without the ones before and behind.
uint32_t plain_crc(uint32_t crc, const uint8_t* data, size_t size) {
  for (; size > 0; ++data, --size) crc = crc >> 8 ^ kTable.of[(crc ^ *data) & 255];
  return crc;
}

#if defined(__SSE2__)

// x^power modulo the polynomial, placed so that its product with eight bytes comes out in place.
constexpr uint64_t forward(int power) {
  uint32_t r = 1u << 31;
  for (int i = 0; i < power; ++i) r = times_x(r);
  return static_cast<uint64_t>(r) << 1;
}
// Factors of the first and the last eight of 16 bytes that move them `bits` forward.
struct Factors {
  uint64_t first, last;
};
template <int kBits>
struct Forward {
  static constexpr Factors value = {forward(kBits + 32), forward(kBits - 32)};
};

#define SLIMGRAD_FOLD __attribute__((target("pclmul,sse4.1")))
#define SLIMGRAD_WIDE_FOLD __attribute__((target("avx512f,avx512bw,vpclmulqdq,pclmul")))

SLIMGRAD_FOLD inline __m128i read16(const uint8_t* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}
SLIMGRAD_FOLD inline __m128i both_of(Factors f) {
  return _mm_set_epi64x(static_cast<long long>(f.last), static_cast<long long>(f.first));
}
SLIMGRAD_FOLD inline __m128i moved(__m128i a, __m128i factors) {
  return _mm_xor_si128(_mm_clmulepi64_si128(a, factors, 0x00),
                       _mm_clmulepi64_si128(a, factors, 0x11));
}

// Of 64 bytes or more, a multiple of 16; the same as plain_crc.
SLIMGRAD_FOLD uint32_t folded_crc(uint32_t crc, const uint8_t* data, size_t size) {
  __m128i sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = read16(data + 16 * i);
  sum[0] = _mm_xor_si128(sum[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  const __m128i by_64 = both_of(Forward<512>::value), by_16 = both_of(Forward<128>::value);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64)
    for (int i = 0; i < 4; ++i)
      sum[i] = _mm_xor_si128(moved(sum[i], by_64), read16(data + 16 * i));
  __m128i all = sum[0];
  for (int i = 1; i < 4; ++i) all = _mm_xor_si128(moved(all, by_16), sum[i]);
  for (; size >= 16; data += 16, size -= 16) all = _mm_xor_si128(moved(all, by_16), read16(data));
  uint8_t left[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(left), all);
  return plain_crc(0, left, sizeof left);
}

SLIMGRAD_WIDE_FOLD inline __m512i read64(const uint8_t* data) { return _mm512_loadu_si512(data); }
SLIMGRAD_WIDE_FOLD inline __m512i all_of(Factors f) {
  return _mm512_set_epi64(static_cast<long long>(f.last), static_cast<long long>(f.first),
                          static_cast<long long>(f.last), static_cast<long long>(f.first),
                          static_cast<long long>(f.last), static_cast<long long>(f.first),
                          static_cast<long long>(f.last), static_cast<long long>(f.first));
}
SLIMGRAD_WIDE_FOLD inline __m512i moved_onto(__m512i a, __m512i factors, __m512i onto) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(a, factors, 0x00),
                                   _mm512_clmulepi64_epi128(a, factors, 0x11), onto, 0x96);
}

// Of 256 bytes or more, a multiple of 64.
SLIMGRAD_WIDE_FOLD uint32_t wide_folded_crc(uint32_t crc, const uint8_t* data, size_t size) {
  __m512i sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = read64(data + 64 * i);
  sum[0] = _mm512_xor_si512(
      sum[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  const __m512i by_256 = all_of(Forward<2048>::value), by_64 = all_of(Forward<512>::value);
  for (data += 256, size -= 256; size >= 256; data += 256, size -= 256)
    for (int i = 0; i < 4; ++i) sum[i] = moved_onto(sum[i], by_256, read64(data + 64 * i));
  __m512i all = sum[0];
  for (int i = 1; i < 4; ++i) all = moved_onto(all, by_64, sum[i]);
  for (; size >= 64; data += 64, size -= 64) all = moved_onto(all, by_64, read64(data));
  // What is left stands for as many bytes as it has.
  uint8_t left[64];
  _mm512_storeu_si512(left, all);
  return folded_crc(0, left, sizeof left);
}

size_t folded_part(size_t size, size_t least, size_t unit) {
  return size < least ? 0 : size / unit * unit;
}

// The crc after as many of the bytes as a wider way serves for; moves `data` and `size` behind them.
uint32_t fast_crc(uint32_t crc, const uint8_t*& data, size_t& size) {
  static const bool folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  static const bool folds_wide = folds && __builtin_cpu_supports("vpclmulqdq") &&
                                 __builtin_cpu_supports("avx512f") &&
                                 __builtin_cpu_supports("avx512bw");
  const auto advance = [&](size_t part) {
    data += part;
    size -= part;
  };
  if (current_isa() == Isa::avx512 && folds_wide) {
    if (const size_t part = folded_part(size, 256, 64); part > 0) {
      crc = wide_folded_crc(crc, data, part);
      advance(part);
    }
  }
  if (current_isa() != Isa::baseline && folds) {
    if (const size_t part = folded_part(size, 64, 16); part > 0) {
      crc = folded_crc(crc, data, part);
      advance(part);
    }
  }
  return crc;
}

#else
uint32_t fast_crc(uint32_t crc, const uint8_t*&, size_t&) { return crc; }
#endif

}  // namespace

uint32_t crc32(uint32_t start, const uint8_t* data, size_t size) {
  const uint32_t crc = fast_crc(~start, data, size);
  return ~plain_crc(crc, data, size);
}

}  // namespace slimgrad

// Packs the signs of an array into bits, and masks an array with such bits.
#include "sign_mask.h"

#include "parallel.h"
#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kLanes = 16, kGrain = 65536;

// Bit i is set where element i of sixteen is above zero or not a number.
SLIMGRAD_INLINE uint16_t positive_bits(const float* x) {
#if defined(SLIMGRAD_ISA_avx512)
  return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_setzero_ps(), _CMP_NLE_UQ);
#elif defined(SLIMGRAD_ISA_avx2)
  const __m256 zero = _mm256_setzero_ps();
  const int low = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), zero, _CMP_NLE_UQ));
  const int high = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + 8), zero, _CMP_NLE_UQ));
  return static_cast<uint16_t>(low | high << 8);
#else
  uint16_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<uint16_t>(!(x[i] <= 0.0f) << i);
  return bits;
#endif
}

SLIMGRAD_INLINE void keep_where(const float* x, uint16_t bits, float* out) {
#if defined(SLIMGRAD_ISA_avx512)
  _mm512_storeu_ps(out, _mm512_maskz_loadu_ps(bits, x));
#elif defined(SLIMGRAD_ISA_avx2)
  const __m256i place = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (int half = 0; half < 2; ++half) {
    const __m256i all = _mm256_set1_epi32(bits >> (8 * half) & 0xFF);
    const __m256i mask = _mm256_cmpeq_epi32(_mm256_and_si256(all, place), place);
    const __m256 kept = _mm256_and_ps(_mm256_loadu_ps(x + 8 * half), _mm256_castsi256_ps(mask));
    _mm256_storeu_ps(out + 8 * half, kept);
  }
#else
  for (int i = 0; i < kLanes; ++i) out[i] = bits >> i & 1 ? x[i] : 0.0f;
#endif
}

// Runs work(first, last) over elements in multiples of sixteen.
template <typename Work>
void over_elements(const MaskProblem& t, const Work& work) {
  parallel_ranges(0, (t.n + kLanes - 1) / kLanes, kGrain / kLanes, t.serial,
                  [&](int64_t from, int64_t to) {
                    const int64_t last = to * kLanes < t.n ? to * kLanes : t.n;
                    work(from * kLanes, last);
                  });
}

}  // namespace

void pack_positive(const MaskProblem& t) {
  over_elements(t, [&](int64_t first, int64_t last) {
    int64_t i = first;
    for (; i + kLanes <= last; i += kLanes) {
      const uint16_t bits = positive_bits(t.values + i);
      t.bits[i / 8] = static_cast<uint8_t>(bits);
      t.bits[i / 8 + 1] = static_cast<uint8_t>(bits >> 8);
    }
    for (int64_t j = i; j < last; ++j) {
      if (j % 8 == 0) t.bits[j / 8] = 0;
      t.bits[j / 8] |= static_cast<uint8_t>(!(t.values[j] <= 0.0f) << (j % 8));
    }
  });
}

void apply_mask(const MaskProblem& t) {
  over_elements(t, [&](int64_t first, int64_t last) {
    int64_t i = first;
    for (; i + kLanes <= last; i += kLanes) {
      const auto bits = static_cast<uint16_t>(t.bits[i / 8] | t.bits[i / 8 + 1] << 8);
      keep_where(t.values + i, bits, t.out + i);
    }
    for (; i < last; ++i) t.out[i] = t.bits[i / 8] >> (i % 8) & 1 ? t.values[i] : 0.0f;
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

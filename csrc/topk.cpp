// The k largest magnitudes of a vector, exactly: a sample guesses a threshold, one pass collects
// what reaches it, a radix selection among the collected finds the rest. A guess that turns out
// wrong costs three more passes.
#include "topk.h"

#include <cstdlib>
#include <new>

#include "simd.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr uint32_t kMagnitude = 0x7FFFFFFF;
constexpr int kGroup = 16;
constexpr int64_t kSampled = 1 << 16;  // components from which on a sample is taken
constexpr int64_t kStride = 32;        // groups of which one is sampled
constexpr int kSampleShift = 19;       // bins of 1/16 of an octave
constexpr int kBins = 1 << 12;

SLIMGRAD_INLINE uint32_t magnitude(const float* x) {
  uint32_t bits;
  __builtin_memcpy(&bits, x, sizeof bits);
  return bits & kMagnitude;
}

// What to keep: all above `bits`, and the first `ties` equal to it.
struct Cut {
  uint32_t bits;
  int64_t ties;
};

// The bin from the top in which the k-th falls; k becomes its rank inside that bin.
int bin_of_rank(const uint32_t* counts, int bins, int64_t* k) {
  int bin = bins - 1;
  for (; bin > 0 && counts[bin] < *k; --bin) *k -= counts[bin];
  return bin;
}

// The cut that keeps k of `count` magnitudes, 1 <= k <= count: eleven, ten and ten bits in turn.
template <typename Read>
Cut find_cut(const Read& read, int64_t count, int64_t k) {
  uint32_t counts[2048];
  uint32_t prefix = 0;
  for (int shift = 20; shift >= 0; shift -= 10) {
    const int bins = shift == 20 ? 2048 : 1024;
    for (int bin = 0; bin < bins; ++bin) counts[bin] = 0;
    // The first digit has no digits above it to agree with.
    const int above = shift == 20 ? 31 : shift + 10;
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = read(i);
      if (bits >> above == prefix) ++counts[(bits >> shift) & (bins - 1)];
    }
    prefix = prefix << (shift == 20 ? 11 : 10) | bin_of_rank(counts, bins, &k);
  }
  return {prefix, k};
}

// A magnitude that somewhat more than k components probably reach; 0 when there is no saying.
uint32_t guess(const float* vector, int64_t n, int64_t k) {
  uint32_t counts[kBins] = {};
  int64_t sampled = 0;
  for (int64_t e = 0; e + kGroup <= n; e += kStride * kGroup, sampled += kGroup)
    for (int i = 0; i < kGroup; ++i) ++counts[magnitude(vector + e + i) >> kSampleShift];
  const int64_t expected = k * sampled / n;
  int64_t wanted = expected + expected / 4 + 64;
  if (wanted >= sampled) return 0;
  return static_cast<uint32_t>(bin_of_rank(counts, kBins, &wanted)) << kSampleShift;
}

// Components that reach a threshold, in order; one allocation.
struct Collected {
  uint32_t* bits;
  uint32_t* places;
  int64_t count = 0;
  int64_t capacity;

  explicit Collected(int64_t room) : capacity(room) {
    const size_t slots = static_cast<size_t>(room) + kGroup;
    bits = static_cast<uint32_t*>(std::malloc(2 * slots * sizeof(uint32_t)));
    if (bits == nullptr) throw std::bad_alloc();
    places = bits + slots;
  }
  ~Collected() { std::free(bits); }
  Collected(const Collected&) = delete;
  Collected& operator=(const Collected&) = delete;

  SLIMGRAD_INLINE void add(uint32_t magnitude_bits, int64_t place) {
    bits[count] = magnitude_bits;
    places[count++] = static_cast<uint32_t>(place);
  }

  SLIMGRAD_INLINE void add_group(const float* x, int64_t place, uint32_t threshold) {
#if defined(SLIMGRAD_ISA_avx512)
    const __m512i found = _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(kMagnitude));
    const __mmask16 hit = _mm512_cmpge_epu32_mask(found, _mm512_set1_epi32(static_cast<int>(threshold)));
    if (hit == 0) return;
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i where = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(place)));
    // Whole registers: a compressing store is slow on some processors.
    _mm512_storeu_si512(bits + count, _mm512_maskz_compress_epi32(hit, found));
    _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(hit, where));
    count += __builtin_popcount(hit);
#else
    uint32_t any = 0;
    for (int i = 0; i < kGroup; ++i) any |= magnitude(x + i) >= threshold;
    if (any == 0) return;
    for (int i = 0; i < kGroup; ++i)
      if (magnitude(x + i) >= threshold) add(magnitude(x + i), place + i);
#endif
  }

  // False when there is no room for all.
  bool fill(const float* vector, int64_t n, uint32_t threshold) {
    int64_t e = 0;
    for (; e + kGroup <= n; e += kGroup) {
      if (count > capacity - kGroup) return false;
      add_group(vector + e, e, threshold);
    }
    for (; e < n; ++e)
      if (magnitude(vector + e) >= threshold) add(magnitude(vector + e), e);
    return true;
  }
};

template <typename Read, typename Place>
void keep(const Read& read, const Place& place, int64_t count, Cut cut, int64_t* places) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = read(i);
    if (bits < cut.bits || (bits == cut.bits && cut.ties-- <= 0)) continue;
    *places++ = place(i);
  }
}

bool from_sample(const TopKArgs& args) {
  if (args.n < kSampled) return false;
  const uint32_t threshold = guess(args.vector, args.n, args.k);
  if (threshold == 0) return false;
  Collected found(2 * args.k + kSampled);
  if (!found.fill(args.vector, args.n, threshold) || found.count < args.k) return false;
  const auto read = [&](int64_t i) { return found.bits[i]; };
  const Cut cut = find_cut(read, found.count, args.k);
  keep(read, [&](int64_t i) { return static_cast<int64_t>(found.places[i]); }, found.count, cut,
       args.places);
  return true;
}

}  // namespace

void topk_places(const TopKArgs& args) {
  if (args.k == 0 || from_sample(args)) return;
  const auto read = [&](int64_t i) { return magnitude(args.vector + i); };
  const Cut cut = find_cut(read, args.n, args.k);
  keep(read, [](int64_t i) { return i; }, args.n, cut, args.places);
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

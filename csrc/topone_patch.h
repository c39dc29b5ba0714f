// Phase two: for every filter and kernel tap, the weighted sum over the samples of the input pixel
// that the kept place sees through this tap.
#pragma once
#include "topone.h"
#include "topone_scan.h"
#include "topone_vector.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// A block of input samples as the accumulation reads it.
struct Source {
  const float* base;       // first sample, first channel of the block
  int64_t pixel_stride;    // floats from one pixel to the next
  int64_t channel_stride;  // 1, or the size of a plane
  int64_t sample_stride;
};

// One list entry a kept place: where its patch begins in the input, and with which weight.
struct PlaceList {
  int32_t *row, *column, *offset;
  float* weight;
  int64_t count;
};

// Memory for one filter's places and for those of them that one tap sees inside the input.
struct PlaceLists {
  PlaceList all, seen;
};

constexpr int64_t kListSlack = 64;  // vector stores may run past the end

inline int64_t place_list_floats(int64_t samples) { return 7 * (samples + kListSlack); }

inline PlaceLists make_place_lists(float* memory, int64_t samples) {
  const int64_t room = samples + kListSlack;
  auto* ints = reinterpret_cast<int32_t*>(memory);
  PlaceLists lists;
  lists.all = {ints, ints + room, ints + 2 * room, memory + 3 * room, 0};
  lists.seen = {nullptr, nullptr, ints + 4 * room, memory + 5 * room, 0};
  return lists;
}

// Input row and column that the first tap sees from each output place.
struct Origins {
  int32_t *row, *column;
};

inline void fill_origins(const TopOneProblem& t, const Origins& origins) {
  for (int64_t p = 0; p < t.p; ++p)
    for (int64_t q = 0; q < t.q; ++q) {
      origins.row[p * t.q + q] = static_cast<int32_t>(p * t.stride_h - t.padding_h);
      origins.column[p * t.q + q] = static_cast<int32_t>(q * t.stride_w - t.padding_w);
    }
}

inline void list_places(const TopOneProblem& t, const Source& source, const Origins& origins,
                        const float* weight, const int32_t* place, int64_t samples,
                        PlaceList& list) {
  int64_t count = 0;
  for (int64_t n = 0; n < samples; ++n) {
    const int32_t row = origins.row[place[n]], column = origins.column[place[n]];
    list.row[count] = row;
    list.column[count] = column;
    list.offset[count] = static_cast<int32_t>(n * source.sample_stride +
                                              (row * t.w + column) * source.pixel_stride);
    list.weight[count] = weight[n];
    count += weight[n] != 0.0f;
  }
  list.count = count;
}

// The places whose tap (down, right) pixels from the patch origin lies inside the input.
inline void select_seen(const TopOneProblem& t, const Source& source, const PlaceList& all,
                        int64_t down, int64_t right, PlaceList& seen) {
  const auto shift = static_cast<int32_t>((down * t.w + right) * source.pixel_stride);
  int64_t count = 0;
#if defined(SLIMGRAD_ISA_avx512)
  const __m512i height = _mm512_set1_epi32(int(t.h)), width = _mm512_set1_epi32(int(t.w));
  const __m512i below = _mm512_set1_epi32(int(down)), beside = _mm512_set1_epi32(int(right));
  const __m512i shifts = _mm512_set1_epi32(shift);
  for (int64_t i = 0; i < all.count; i += 16) {
    const int64_t left = all.count - i;
    auto mask = static_cast<__mmask16>(left >= 16 ? 0xffffu : (1u << left) - 1u);
    const __m512i row = _mm512_add_epi32(_mm512_loadu_si512(all.row + i), below);
    const __m512i column = _mm512_add_epi32(_mm512_loadu_si512(all.column + i), beside);
    mask = _mm512_mask_cmplt_epu32_mask(mask, row, height);
    mask = _mm512_mask_cmplt_epu32_mask(mask, column, width);
    const __m512i offset = _mm512_add_epi32(_mm512_loadu_si512(all.offset + i), shifts);
    _mm512_storeu_si512(seen.offset + count, _mm512_maskz_compress_epi32(mask, offset));
    _mm512_storeu_ps(seen.weight + count,
                     _mm512_maskz_compress_ps(mask, _mm512_loadu_ps(all.weight + i)));
    count += __builtin_popcount(mask);
  }
#else
  for (int64_t i = 0; i < all.count; ++i) {
    seen.offset[count] = static_cast<int32_t>(int64_t{all.offset[i]} + shift);
    seen.weight[count] = all.weight[i];
    count += (static_cast<uint64_t>(all.row[i] + down) < static_cast<uint64_t>(t.h)) &
             (static_cast<uint64_t>(all.column[i] + right) < static_cast<uint64_t>(t.w));
  }
#endif
  seen.count = count;
}

template <int Vectors>
inline void add_runs(const float* base, const PlaceList& seen, float* to, bool first) {
  Vec total[Vectors];
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) total[v] = first ? Vec{} : load(to + v * kLanes);
  for (int64_t i = 0; i < seen.count; ++i) {
    const float* run = base + seen.offset[i];
    const float weight = seen.weight[i];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) total[v] += weight * load(run + v * kLanes);
  }
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) store(to + v * kLanes, total[v]);
}

inline void add_run_part(const float* base, const PlaceList& seen, float* to, bool first,
                         int count) {
  Vec total = first ? Vec{} : load_part(to, count);
  for (int64_t i = 0; i < seen.count; ++i)
    total += seen.weight[i] * load_part(base + seen.offset[i], count);
  store_part(to, total, count);
}

// to[c] += sum over the list of weight * input channel c, channels contiguous.
inline void add_contiguous(const float* base, const PlaceList& seen, int64_t channels, float* to,
                           bool first) {
  int64_t c = 0;
  if constexpr (kMaxVectors >= 16)
    for (; c + 16 * kLanes <= channels; c += 16 * kLanes)
      add_runs<16>(base + c, seen, to + c, first);
  for (; c + 8 * kLanes <= channels; c += 8 * kLanes) add_runs<8>(base + c, seen, to + c, first);
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) add_runs<4>(base + c, seen, to + c, first);
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) add_runs<2>(base + c, seen, to + c, first);
  for (; c + kLanes <= channels; c += kLanes) add_runs<1>(base + c, seen, to + c, first);
  if (c < channels)
    add_run_part(base + c, seen, to + c, first, static_cast<int>(channels - c));
}

// The same where the channels are a plane apart.
inline void add_spread(const float* base, int64_t plane, const PlaceList& seen, int64_t channels,
                       float* to, bool first) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, channels - c));
    Vec total = first ? Vec{} : load_part(to + c, count);
    const float* from = base + c * plane;
    for (int64_t i = 0; i < seen.count; ++i)
      total += seen.weight[i] *
               load_spread(from + seen.offset[i], static_cast<int32_t>(plane), count);
    store_part(to + c, total, count);
  }
}

// Adds one block of samples to [tap][channels] of one filter, taps `tap_stride` floats apart.
inline void add_filter(const TopOneProblem& t, const Source& source, PlaceLists& lists,
                       int64_t channels, float* to, int64_t tap_stride, bool first) {
  for (int64_t r = 0; r < t.r; ++r)
    for (int64_t s = 0; s < t.s; ++s, to += tap_stride) {
      select_seen(t, source, lists.all, r * t.dilation_h, s * t.dilation_w, lists.seen);
      if (source.channel_stride == 1)
        add_contiguous(source.base, lists.seen, channels, to, first);
      else
        add_spread(source.base, source.channel_stride, lists.seen, channels, to, first);
    }
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Phase one: place of the largest magnitude and signed sum of every map of the output gradient.
//
// Magnitudes are compared as integers: with the sign bit cleared, the bit patterns of floats are
// ordered like their values, and NaN lies above infinity.
// The order of every sum depends on the shape alone, never on vector width or thread.
#pragma once
#include "topone.h"
#include "topone_transpose.h"
#include "topone_vector.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// What the scan finds, one entry a (filter, sample), samples contiguous.
struct Kept {
  float* weight;   // scale * sum of the map
  int32_t* place;  // p * Q + q of the largest magnitude
  int64_t stride;  // entries from one filter to the next
};

inline int32_t magnitude_bits(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits & 0x7fffffff;
}

// One lane's running state and how two of them join; the earlier place wins a tie.
struct Running {
  int32_t top = -1, place = 0;
  float sum = 0.0f;

  void join(int32_t other_top, int32_t other_place, float other_sum) {
    if (other_top > top || (other_top == top && other_place < place)) {
      top = other_top;
      place = other_place;
    }
    sum += other_sum;
  }
};

// The gradient is often still in main memory; without asking this far ahead (in floats) the scan
// takes about twice as long there.
constexpr int64_t kAhead = 4096;
constexpr int64_t kLineFloats = 16;

inline void fetch(const float* from) { __builtin_prefetch(from, 0, 2); }

template <int Vectors, int Chains>
struct LaneScan {
  Vec sum[Chains][Vectors];
  IntVec top[Chains][Vectors], place[Chains][Vectors];

  void step(const float* row, int chain, int32_t pixel) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const Vec value = load(row + v * kLanes);
      const IntVec bits = reinterpret_cast<IntVec>(value) & 0x7fffffff;
      const IntVec more = bits > top[chain][v];
      top[chain][v] = more ? bits : top[chain][v];
      place[chain][v] = more ? (IntVec{} + pixel) : place[chain][v];
      sum[chain][v] += value;
    }
  }

  void clear() {
#pragma GCC unroll 4
    for (int chain = 0; chain < Chains; ++chain)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        sum[chain][v] = Vec{};
        top[chain][v] = IntVec{} - 1;
        place[chain][v] = IntVec{};
      }
  }

  void step(const float* row, int chain, int32_t pixel, int64_t ahead) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      if (v * kLanes % kLineFloats == 0) fetch(row + v * kLanes + ahead);
    step(row, chain, pixel);
  }

  // Rows of `filters` floats, one a pixel; those `ahead` floats further on are wanted soon.
  void run(const float* grad, int64_t pixels, int64_t filters, int64_t ahead) {
    clear();
    int64_t pixel = 0;
    for (; pixel + Chains <= pixels; pixel += Chains)
#pragma GCC unroll 4
      for (int chain = 0; chain < Chains; ++chain)
        step(grad + (pixel + chain) * filters, chain, static_cast<int32_t>(pixel + chain), ahead);
    if constexpr (Chains > 1) {
#pragma GCC unroll 4
      for (int chain = 0; chain < Chains - 1; ++chain)
        if (pixel + chain < pixels)
          step(grad + (pixel + chain) * filters, chain, static_cast<int32_t>(pixel + chain), ahead);
    }
  }

  void write(float scale, float* weight, int32_t* where, int64_t stride) const {
    for (int v = 0; v < Vectors; ++v)
      for (int lane = 0; lane < kLanes; ++lane) {
        Running all;
        for (int chain = 0; chain < Chains; ++chain)
          all.join(top[chain][v][lane], place[chain][v][lane], sum[chain][v][lane]);
        weight[(v * kLanes + lane) * stride] = scale * all.sum;
        where[(v * kLanes + lane) * stride] = all.place;
      }
  }
};

// Few filters make short rows: then four pixels are followed side by side to hide latency.
inline int scan_chains(int64_t filters) { return filters < 64 ? 4 : 1; }

template <int Vectors, int Chains>
void scan_filters_last(const TopOneProblem& t, const float* grad, const Kept& to, int64_t sample) {
  LaneScan<Vectors, Chains> scan;
  scan.run(grad, t.p * t.q, t.k, larger(1, kAhead / t.k) * t.k);
  scan.write(t.scale, to.weight + sample, to.place + sample, to.stride);
}

inline void scan_one_filter_last(const TopOneProblem& t, const float* grad, const Kept& to,
                                 int64_t sample) {
  const int chains = scan_chains(t.k);
  Running chain[4];
  for (int64_t pixel = 0; pixel < t.p * t.q; ++pixel) {
    const float value = grad[pixel * t.k];
    chain[pixel % chains].join(magnitude_bits(value), static_cast<int32_t>(pixel), value);
  }
  Running all;
  for (int i = 0; i < chains; ++i) all.join(chain[i].top, chain[i].place, chain[i].sum);
  to.weight[sample] = t.scale * all.sum;
  to.place[sample] = all.place;
}

// Maps interleaved: lanes run over filters.
inline void scan_channels_last(const TopOneProblem& t, int64_t n0, int64_t n1, int64_t k0,
                               int64_t k1, const Kept& kept) {
  constexpr int kWide = kLanes == 16 ? 4 : 3;      // 3 registers a vector
  constexpr int kPaired = kLanes == 16 ? 2 : 1;    // times four chains
  const bool chained = scan_chains(t.k) == 4;
  for (int64_t n = n0; n < n1; ++n) {
    const float* grad = t.grad_out + n * t.p * t.q * t.k;
    int64_t k = k0;
    while (k < k1) {
      const Kept to = {kept.weight + (k - k0) * kept.stride, kept.place + (k - k0) * kept.stride,
                       kept.stride};
      const int64_t left = k1 - k;
      if (left < kLanes) {
        scan_one_filter_last(t, grad + k, to, n - n0);
        k += 1;
      } else if (chained && left >= kPaired * kLanes) {
        scan_filters_last<kPaired, 4>(t, grad + k, to, n - n0);
        k += kPaired * kLanes;
      } else if (chained) {
        scan_filters_last<1, 4>(t, grad + k, to, n - n0);
        k += kLanes;
      } else if (left >= kWide * kLanes) {
        scan_filters_last<kWide, 1>(t, grad + k, to, n - n0);
        k += kWide * kLanes;
      } else {
        scan_filters_last<1, 1>(t, grad + k, to, n - n0);
        k += kLanes;
      }
    }
  }
}

// Of a map read on its own, pixel i belongs to lane i % 32 in every instruction set.
constexpr int kMapLanes = 32;

struct MapLanes {
  float sum[kMapLanes];
  int32_t top[kMapLanes], place[kMapLanes];

  template <int Half>
  void fold() {
    for (int i = 0; i < Half; ++i) {
      const bool more = (top[i + Half] > top[i]) |
                        ((top[i + Half] == top[i]) & (place[i + Half] < place[i]));
      top[i] = more ? top[i + Half] : top[i];
      place[i] = more ? place[i + Half] : place[i];
      sum[i] += sum[i + Half];
    }
    if constexpr (Half > 1) fold<Half / 2>();
  }
};

inline Running scan_map(const float* map, int64_t pixels) {
  constexpr int kVectors = kMapLanes / kLanes;
  Running all;
  const int64_t whole = pixels - pixels % kMapLanes;
  if (whole > 0) {
    LaneScan<kVectors, 1> scan;
    scan.clear();
    for (int64_t i = 0; i < whole; i += kMapLanes)
      scan.step(map + i, 0, static_cast<int32_t>(i), kAhead);
    MapLanes lanes;
    for (int v = 0; v < kVectors; ++v) {
      IntVec place = scan.place[0][v];
      for (int lane = 0; lane < kLanes; ++lane) place[lane] += v * kLanes + lane;
      std::memcpy(lanes.sum + v * kLanes, &scan.sum[0][v], sizeof place);
      std::memcpy(lanes.top + v * kLanes, &scan.top[0][v], sizeof place);
      std::memcpy(lanes.place + v * kLanes, &place, sizeof place);
    }
    lanes.fold<kMapLanes / 2>();
    all.join(lanes.top[0], lanes.place[0], lanes.sum[0]);
  }
  for (int64_t i = whole; i < pixels; ++i)
    all.join(magnitude_bits(map[i]), static_cast<int32_t>(i), map[i]);
  return all;
}

inline Running scan_small_map(const float* map, int64_t pixels) {
  Running all;
  for (int64_t i = 0; i < pixels; ++i)
    all.join(magnitude_bits(map[i]), static_cast<int32_t>(i), map[i]);
  return all;
}

// Maps contiguous. Large ones are read one by one, lanes running over pixels; small ones are
// transposed, kTogether at a time, since folding the lanes would cost more than the reading.
constexpr int64_t kSmallMap = 64;
constexpr int kTogether = 16;  // as many maps as a line has floats: pixel i fetches line i

inline void scan_contiguous(const TopOneProblem& t, int64_t n0, int64_t n1, int64_t k0, int64_t k1,
                            const Kept& kept) {
  const int64_t pixels = t.p * t.q;
  const bool small = pixels <= kSmallMap;
  float together[kSmallMap * kTogether];
  LaneScan<kTogether / kLanes, 1> scan;
  for (int64_t n = n0; n < n1; ++n)
    for (int64_t k = k0; k < k1;) {
      const float* map = t.grad_out + (n * t.k + k) * pixels;
      float* weight = kept.weight + (k - k0) * kept.stride + n - n0;
      int32_t* place = kept.place + (k - k0) * kept.stride + n - n0;
      if (small && k + kTogether <= k1) {
        for (int64_t i = 0; i < pixels; ++i) fetch(map + i * kTogether + kAhead);
        transpose(map, pixels, kTogether, pixels, together, kTogether);
        scan.run(together, pixels, kTogether, 0);
        scan.write(t.scale, weight, place, kept.stride);
        k += kTogether;
        continue;
      }
      const Running found = small ? scan_small_map(map, pixels) : scan_map(map, pixels);
      *weight = t.scale * found.sum;
      *place = found.place;
      k += 1;
    }
}

inline void scan(const TopOneProblem& t, int64_t n0, int64_t n1, int64_t k0, int64_t k1,
                 const Kept& kept) {
  if (t.grad_last)
    scan_channels_last(t, n0, n1, k0, k1, kept);
  else
    scan_contiguous(t, n0, n1, k0, k1, kept);
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

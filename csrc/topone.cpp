// Top-1 filter gradient: scan of the output gradient, then accumulation of the kept patches.
// Compiled once for each instruction set; uses no standard library templates, whose instances the
// linker would share between instruction sets.
#include "topone.h"

#include <cstdlib>

#include "parallel.h"
#include "topone_pack.h"
#include "topone_patch.h"
#include "topone_scan.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// How the input is read, from the shape alone, so that the result is the same on any thread count.
struct Plan {
  bool packed;       // copied block by block, channels contiguous; else read where it lies
  int64_t channels;  // channels of a block, within one group
  int64_t samples;   // samples of a block
};

constexpr int64_t kBlockFloats = (int64_t{1} << 20) / 4;  // half of a 2 MiB second-level cache

Plan make_plan(const TopOneProblem& t, int64_t samples) {
  const int64_t pixels = t.h * t.w, width = t.group_channels();
  Plan plan = {false, width, samples};
  const int64_t in_place = larger(1, kBlockFloats / (pixels * t.c));
  // Times that a pixel is read at most, if the kept places spread evenly.
  const bool often = t.group_filters() * t.taps() > 4 * pixels;
  // Planes: one gathered float costs about as much as copying one. Interleaved channels: copying
  // pays where it spares the sums many trips to memory.
  if (t.x_last)
    plan.packed = in_place < samples && often && width >= 128;
  else
    plan.packed = t.group_filters() * t.taps() > pixels && width > 1;
  if (!plan.packed) {
    plan.samples = smaller(samples, in_place);
    return plan;
  }
  plan.channels = smaller(padded(width), larger(64, kBlockFloats / (pixels * samples) / 64 * 64));
  plan.samples = smaller(samples, larger(1, kBlockFloats / (pixels * plan.channels)));
  return plan;
}

// Memory of one call of accumulate(); one allocation.
struct Scratch {
  float* memory = nullptr;
  Kept kept = {};
  Origins origins = {};
  PlaceLists lists = {};
  float* block = nullptr;
  float* sums = nullptr;

  Scratch(const TopOneProblem& t, const Plan& plan, int64_t samples, int64_t filters) {
    const int64_t places = t.p * t.q, entries = filters * samples;
    const int64_t list = place_list_floats(plan.samples);
    const int64_t block_floats =
        plan.packed ? plan.samples * t.h * t.w * padded(plan.channels) + kLanes : 0;
    const int64_t sum_floats = filters * t.taps() * plan.channels;
    const int64_t total = block_floats + sum_floats + 2 * entries + 2 * places + list + 64;
    memory = static_cast<float*>(std::malloc(sizeof(float) * static_cast<size_t>(total)));
    if (memory == nullptr) return;
    const auto misaligned = reinterpret_cast<uintptr_t>(memory) % 64 / sizeof(float);
    block = memory + (misaligned ? 16 - misaligned : 0);
    sums = block + block_floats;
    kept = {sums + sum_floats, reinterpret_cast<int32_t*>(sums + sum_floats + entries), samples};
    origins.row = kept.place + entries;
    origins.column = origins.row + places;
    lists = make_place_lists(reinterpret_cast<float*>(origins.column + places), plan.samples);
  }
  ~Scratch() { std::free(memory); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

Source locate(const TopOneProblem& t, const Plan& plan, float* block, int64_t n0, int64_t n1,
              int64_t c0, int64_t channels) {
  const int64_t pixels = t.h * t.w;
  if (plan.packed) {
    pack(t, n0, n1, c0, channels, block);
    return {block, padded(channels), 1, pixels * padded(channels)};
  }
  if (t.x_last) return {t.x + n0 * pixels * t.c + c0, t.c, 1, pixels * t.c};
  return {t.x + (n0 * t.c + c0) * pixels, 1, pixels, pixels * t.c};
}

// Filters [k0, k1) of one group over samples [n0, n1). `out` holds all filters, as [tap][channel]
// when taps_first, else as [channel][tap]. kept begins at filter k0.
void accumulate_group(const TopOneProblem& t, const Plan& plan, Scratch& scratch, int64_t n0,
                      int64_t n1, int64_t k0, int64_t k1, const Kept& kept, float* out,
                      bool taps_first) {
  const int64_t width = t.group_channels(), first_channel = k0 / t.group_filters() * width;
  for (int64_t c0 = 0; c0 < width; c0 += plan.channels) {
    const int64_t channels = smaller(plan.channels, width - c0);
    for (int64_t n = n0; n < n1; n += plan.samples) {
      const int64_t end = smaller(n + plan.samples, n1);
      const Source source =
          locate(t, plan, scratch.block, n, end, first_channel + c0, channels);
      for (int64_t k = k0; k < k1; ++k) {
        const int64_t entry = (k - k0) * kept.stride + n - n0;
        list_places(t, source, scratch.origins, kept.weight + entry, kept.place + entry, end - n,
                    scratch.lists.all);
        float* result = out + k * t.taps() * width;
        float* sums = scratch.sums + (k - k0) * t.taps() * channels;
        add_filter(t, source, scratch.lists, channels, taps_first ? result + c0 : sums,
                   taps_first ? width : channels, n == n0);
        if (!taps_first && end == n1)
          transpose(sums, channels, t.taps(), channels, result + c0 * t.taps(), t.taps());
      }
    }
  }
}

bool accumulate(const TopOneProblem& t, int64_t n0, int64_t n1, int64_t k0, int64_t k1, float* out,
                bool taps_first) {
  const Plan plan = make_plan(t, n1 - n0);
  Scratch scratch(t, plan, n1 - n0, k1 - k0);
  if (scratch.memory == nullptr) return false;
  scan(t, n0, n1, k0, k1, scratch.kept);
  fill_origins(t, scratch.origins);
  while (k0 < k1) {
    const int64_t filters = t.group_filters(), end = smaller(k1, (k0 / filters + 1) * filters);
    accumulate_group(t, plan, scratch, n0, n1, k0, end, scratch.kept, out, taps_first);
    scratch.kept.weight += (end - k0) * scratch.kept.stride;
    scratch.kept.place += (end - k0) * scratch.kept.stride;
    k0 = end;
  }
  return true;
}

// Small gradients are shared out by samples: partial sums, added in one fixed order.
constexpr int64_t kSmallFloats = 64 * 1024;
constexpr int64_t kSampleBlocks = 8;

bool by_samples(const TopOneProblem& t) {
  const int64_t blocks = smaller(kSampleBlocks, (t.n + 7) / 8);
  const int64_t size = t.k * t.taps() * t.group_channels();
  auto* partial = static_cast<float*>(std::malloc(sizeof(float) * size_t(blocks * size)));
  if (partial == nullptr) return false;
  bool done = true;
  parallel_ranges(0, blocks, 1, t.serial, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b) {
      const int64_t n0 = b * t.n / blocks, n1 = (b + 1) * t.n / blocks;
      if (!accumulate(t, n0, n1, 0, t.k, partial + b * size, true))
        __atomic_store_n(&done, false, __ATOMIC_RELAXED);
    }
  });
  for (int64_t b = 1; b < blocks; ++b)
    for (int64_t i = 0; i < size; ++i) partial[i] += partial[b * size + i];
  const int64_t filter = t.taps() * t.group_channels();
  if (t.out_last)
    std::memcpy(t.out, partial, sizeof(float) * static_cast<size_t>(size));
  else
    for (int64_t k = 0; k < t.k; ++k)
      transpose(partial + k * filter, t.group_channels(), t.taps(), t.group_channels(),
                t.out + k * filter, t.taps());
  std::free(partial);
  return done;
}

bool by_filters(const TopOneProblem& t) {
  bool done = true;
  constexpr int64_t kUnit = 16;  // filters of one cache line of a channels-last gradient
  parallel_ranges(0, (t.k + kUnit - 1) / kUnit, 1, t.serial, [&](int64_t from, int64_t to) {
    if (!accumulate(t, 0, t.n, from * kUnit, smaller(to * kUnit, t.k), t.out, t.out_last))
      __atomic_store_n(&done, false, __ATOMIC_RELAXED);
  });
  return done;
}

}  // namespace

bool topone_weight_grad(const TopOneProblem& t) {
  const int64_t size = t.k * t.taps() * t.group_channels();
  if (size == 0) return true;
  if (t.n == 0 || t.p * t.q == 0) {
    std::memset(t.out, 0, sizeof(float) * static_cast<size_t>(size));
    return true;
  }
  return size <= kSmallFloats && t.n > 1 ? by_samples(t) : by_filters(t);
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

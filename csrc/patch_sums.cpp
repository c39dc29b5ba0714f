// Sums of the input over what each tap of a convolution sees: one pass over the input.
#include <cstdlib>
#include <cstring>

#include "parallel.h"
#include "positions.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// The output place at which a tap sees input place `at`; -1 when there is none.
int64_t seen_from(int64_t at, int64_t tap, int64_t stride, int64_t padding, int64_t dilation,
                  int64_t places) {
  const int64_t shifted = at + padding - tap * dilation;
  if (shifted < 0 || shifted % stride != 0) return -1;
  return shifted / stride < places ? shifted / stride : -1;
}

// Adds row `h` of sample `n` to `line`, one sum of c floats for every column tap.
void add_columns(const PatchSumProblem& t, int64_t n, int64_t h, float* line) {
  const float* row = t.x + (n * t.h + h) * t.w * t.c;
  for (int64_t w = 0; w < t.w; ++w)
    for (int64_t s = 0; s < t.s; ++s) {
      if (seen_from(w, s, t.stride_w, t.padding_w, t.dilation_w, t.q) < 0) continue;
      float* to = line + s * t.c;
      const float* from = row + w * t.c;
      for (int64_t j = 0; j < t.c; ++j) to[j] += from[j];
    }
}

}  // namespace

bool patch_sums(const PatchSumProblem& t) {
  const int64_t line_floats = t.s * t.c, sample_floats = t.r * line_floats;
  bool done = true;
  parallel_ranges(0, t.n, 1, t.serial, [&](int64_t from, int64_t to) {
    auto* line = static_cast<float*>(std::malloc(sizeof(float) * size_t(line_floats + 16)));
    if (line == nullptr) {
      __atomic_store_n(&done, false, __ATOMIC_RELAXED);
      return;
    }
    for (int64_t n = from; n < to; ++n) {
      float* sum = t.sum + n * sample_floats;
      std::memset(sum, 0, sizeof(float) * size_t(sample_floats));
      for (int64_t h = 0; h < t.h; ++h) {
        std::memset(line, 0, sizeof(float) * size_t(line_floats));
        add_columns(t, n, h, line);
        for (int64_t r = 0; r < t.r; ++r) {
          if (seen_from(h, r, t.stride_h, t.padding_h, t.dilation_h, t.p) < 0) continue;
          float* to_row = sum + r * line_floats;
          for (int64_t j = 0; j < line_floats; ++j) to_row[j] += line[j];
        }
      }
    }
    std::free(line);
  });
  return done;
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

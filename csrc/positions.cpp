// Weight gradient from listed output positions: blocks of positions, segments of the kernel, tiles.
// Uses no standard library templates, whose instances the linker would share between instruction
// sets.
#include "positions.h"

#include <cstdlib>
#include <cstring>

#include "parallel.h"
#include "positions_tile.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// Positions that work on one tile together: their part of it fits the first-level cache. Of single
// taps many positions see nothing.
constexpr int64_t kRowPositions = 128, kTapPositions = 256;
constexpr int64_t kBlockPositions = kTapPositions;
constexpr int64_t kPrefetchChannels = 64;
constexpr int64_t kAlign = 16;  // floats

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t rounded_up(int64_t a, int64_t unit) { return (a + unit - 1) / unit * unit; }

// A part of the kernel that a position reads as one run of floats: one tap, or a whole row of taps.
struct Segment {
  int64_t row, tap, taps;
};

struct Shape {
  int64_t width, filters;  // channels and filters of a group
  bool whole_rows;         // segments are rows of the kernel
  int64_t taps, run;       // of a segment: taps, floats
};

Shape make_shape(const PositionProblem& t) {
  Shape shape = {t.c / t.groups, t.k / t.groups, false, 1, 0};
  // A row of taps is one run of memory. Where the map is narrow most rows reach over its border,
  // and single taps, of which those outside are left out, cost less.
  shape.whole_rows = t.groups == 1 && t.dilation_w == 1 && t.s > 1 &&
                     (t.w > 4 || shape.width < kTileFloats);
  if (shape.whole_rows) shape.taps = t.s;
  shape.run = shape.taps * shape.width;
  return shape;
}

// Where one block's positions lie, and the memory to work on them.
struct Block {
  int64_t first, count;              // positions: place in the list, how many
  int32_t place[kBlockPositions];    // number of the row of grad_out
  int32_t sample[kBlockPositions];   // of each position
  int32_t row[kBlockPositions];      // of the first tap in the input
  int32_t column[kBlockPositions];   // likewise
  int64_t seen;                      // positions of which a segment lies in the input
  int32_t chosen[kBlockPositions];   // their places in the block
  const float* run[kBlockPositions];  // and what they see
};

struct Scratch {
  float* memory = nullptr;
  float *g = nullptr, *border = nullptr, *edge_in = nullptr, *edge_out = nullptr;
  Block* block = nullptr;

  Scratch(const Shape& shape, int64_t filters) {
    const int64_t g_floats = rounded_up(filters, kTileFilters) * kBlockPositions;
    const int64_t border_floats = shape.whole_rows ? kBlockPositions * shape.run + kTileFloats : 0;
    const int64_t edge_floats = kBlockPositions * kTileFloats;
    const int64_t tile = int64_t{kTileFilters} * kTileFloats;
    const int64_t total = g_floats + border_floats + edge_floats + tile + 4 * kAlign;
    const size_t bytes = sizeof(float) * static_cast<size_t>(total) + 2 * sizeof(Block) + 64;
    memory = static_cast<float*>(std::malloc(bytes));
    if (memory == nullptr) return;
    const auto address = reinterpret_cast<uintptr_t>(memory);
    block = reinterpret_cast<Block*>((address + 63) / 64 * 64);
    g = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(block + 2) + 63) / 64 * 64);
    border = g + g_floats;
    edge_in = border + border_floats;
    edge_out = edge_in + edge_floats;
  }
  ~Scratch() { std::free(memory); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

// Walks through the listed positions, which ascend, without divisions.
class Cursor {
 public:
  Cursor(const PositionProblem& t, int64_t first) : t_(t), next_(first) {
    const int64_t place = first < t.count ? place_of(first) : 0;
    line_ = place / t.q * t.q;
    sample_ = place / (t.p * t.q);
    row_ = place % (t.p * t.q) / t.q;
  }
  // The next `count` positions.
  void fill(int64_t count, Block& block) {
    block.first = next_;
    block.count = count;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = place_of(next_++);
      while (place >= line_ + t_.q) {
        line_ += t_.q;
        if (++row_ == t_.p) row_ = 0, ++sample_;
      }
      block.place[i] = static_cast<int32_t>(place);
      block.sample[i] = static_cast<int32_t>(sample_);
      block.row[i] = static_cast<int32_t>(row_ * t_.stride_h - t_.padding_h);
      block.column[i] = static_cast<int32_t>((place - line_) * t_.stride_w - t_.padding_w);
    }
  }

 private:
  int64_t place_of(int64_t i) const { return t_.position == nullptr ? i : t_.position[i]; }

  const PositionProblem& t_;
  int64_t next_, line_, sample_, row_;
};

// Asks for what the block will read: listed positions lie where no prefetcher expects them.
void prefetch_block(const PositionProblem& t, const Block& block, int64_t k0, int64_t k1) {
  constexpr int64_t kLine = 16;  // floats
  const auto ask = [](const float* from, int64_t floats) {
    for (int64_t j = 0; j < floats + kLine - 1; j += kLine) __builtin_prefetch(from + j, 0, 2);
  };
  for (int64_t i = 0; i < block.count; ++i) {
    ask(t.grad_out + int64_t{block.place[i]} * t.k + k0, k1 - k0);
    const int64_t column = block.column[i] < 0 ? 0 : block.column[i];
    for (int64_t r = 0; r < t.r; ++r) {
      const int64_t row = block.row[i] + r * t.dilation_h;
      if (row < 0 || row >= t.h) continue;
      ask(t.x + ((int64_t{block.sample[i]} * t.h + row) * t.w + column) * t.c, t.s * t.c);
    }
  }
}

// Weighted output gradients of filters [k0, k1): [filter / tile][position][filter % tile], with
// zeros behind the last filter.
template <bool kCentred>
void pack_gradients(const PositionProblem& t, const Block& block, int64_t k0, int64_t k1,
                    float* g) {
  for (int64_t i = 0; i < block.count; ++i) {
    const float* row = t.grad_out + int64_t{block.place[i]} * t.k;
    const float* mean = kCentred ? t.mean + int64_t{block.sample[i]} * t.k : nullptr;
    const float weight = t.weight == nullptr ? 1.0f : t.weight[block.first + i];
    const auto factor = [&](int64_t k) {
      if constexpr (kCentred) return weight * (row[k] - mean[k]);
      return weight * row[k];
    };
    float* to = g + i * kTileFilters;
    int64_t k = k0;
    for (; k + kTileFilters <= k1; k += kTileFilters, to += kTileFilters * kBlockPositions)
      for (int64_t f = 0; f < kTileFilters; ++f) to[f] = factor(k + f);
    if (k < k1)
      for (int64_t f = 0; f < kTileFilters; ++f) to[f] = k + f < k1 ? factor(k + f) : 0.0f;
  }
}

// A row of taps that reaches over the border, with zeros outside.
void copy_border(const PositionProblem& t, const float* pixels, int64_t column, int64_t width,
                 float* to) {
  for (int64_t s = 0; s < t.s; ++s) {
    const int64_t at = column + s;
    const size_t bytes = sizeof(float) * static_cast<size_t>(width);
    if (at >= 0 && at < t.w)
      std::memcpy(to + s * width, pixels + at * t.c, bytes);
    else
      std::memset(to + s * width, 0, bytes);
  }
}

// Lists the positions of the block of which `segment` lies in the input, and where.
void list_runs(const PositionProblem& t, const Shape& shape, const Segment& segment,
               int64_t first_channel, Block& block, float* border) {
  int64_t seen = 0;
  for (int64_t i = 0; i < block.count; ++i) {
    const int64_t row = block.row[i] + segment.row * t.dilation_h;
    if (row < 0 || row >= t.h) continue;
    const float* pixels =
        t.x + (int64_t{block.sample[i]} * t.h + row) * t.w * t.c + first_channel;
    const int64_t column = block.column[i] + segment.tap * t.dilation_w;
    if (column >= 0 && column + segment.taps <= t.w) {
      block.run[seen] = pixels + column * t.c;
    } else if (shape.whole_rows && column + segment.taps > 0 && column < t.w) {
      copy_border(t, pixels, column, shape.width, border);
      block.run[seen] = border;
      border += shape.run;
    } else {
      continue;
    }
    block.chosen[seen++] = static_cast<int32_t>(i);
  }
  block.seen = seen;
}

void add_vectors(int vectors, const float* g, const Block& block, int64_t offset, float* out,
                 int64_t out_row) {
  if (vectors == 3)
    add_tile<3>(g, block.chosen, block.run, offset, block.seen, out, out_row);
  else if (vectors == 2)
    add_tile<2>(g, block.chosen, block.run, offset, block.seen, out, out_row);
  else
    add_tile<1>(g, block.chosen, block.run, offset, block.seen, out, out_row);
}

// As add_vectors for a tile of which only `filters` rows and `floats` columns exist.
void add_part(const float* g, const Block& block, int64_t offset, int64_t filters, int64_t floats,
              float* out, int64_t out_row, Scratch& scratch) {
  const int vectors = static_cast<int>((floats + kTileLanes - 1) / kTileLanes);
  const int64_t width = int64_t{vectors} * kTileLanes;
  float* tile = scratch.edge_out;
  std::memset(tile, 0, sizeof(float) * static_cast<size_t>(kTileFilters * width));
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t j = 0; j < floats; ++j) tile[f * width + j] = out[f * out_row + j];
  if (floats == width) {
    add_vectors(vectors, g, block, offset, tile, width);
  } else {
    const float* run[kBlockPositions];
    for (int64_t i = 0; i < block.seen; ++i) {
      float* to = scratch.edge_in + i * width;
      for (int64_t j = 0; j < width; ++j) to[j] = j < floats ? block.run[i][offset + j] : 0.0f;
      run[i] = to;
    }
    if (vectors == 3)
      add_tile<3>(g, block.chosen, run, 0, block.seen, tile, width);
    else if (vectors == 2)
      add_tile<2>(g, block.chosen, run, 0, block.seen, tile, width);
    else
      add_tile<1>(g, block.chosen, run, 0, block.seen, tile, width);
  }
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t j = 0; j < floats; ++j) out[f * out_row + j] = tile[f * width + j];
}

// Adds one segment of one block to filters [k0, k1).
void add_segment(const Shape& shape, const Block& block, int64_t k0, int64_t k1, float* out,
                 int64_t out_row, Scratch& scratch) {
  for (int64_t j = 0; j < shape.run; j += kTileFloats) {
    const int64_t floats = smaller(kTileFloats, shape.run - j);
    for (int64_t k = k0; k < k1; k += kTileFilters) {
      const int64_t filters = smaller(kTileFilters, k1 - k);
      const float* g = scratch.g + (k - k0) * kBlockPositions;
      float* tile = out + (k - k0) * out_row + j;
      if (filters == kTileFilters && floats % kTileLanes == 0)
        add_vectors(static_cast<int>(floats / kTileLanes), g, block, j, tile, out_row);
      else
        add_part(g, block, j, filters, floats, tile, out_row, scratch);
    }
  }
}

// Filters [k0, k1), all of one group, over listed positions [first, last). `out` is filter k0's.
void accumulate_group(const PositionProblem& t, const Shape& shape, int64_t first, int64_t last,
                      int64_t k0, int64_t k1, float* out, Scratch& scratch) {
  const int64_t out_row = t.r * t.s * shape.width;
  const int64_t first_channel = k0 / shape.filters * shape.width;
  std::memset(out, 0, sizeof(float) * static_cast<size_t>((k1 - k0) * out_row));
  const int64_t step = shape.whole_rows ? kRowPositions : kTapPositions;
  // With many channels the arithmetic covers the time that memory takes.
  const bool ahead = t.position != nullptr && t.c <= kPrefetchChannels;
  Cursor cursor(t, first);
  Block *block = scratch.block, *next = scratch.block + 1;
  cursor.fill(smaller(step, last - first), *next);
  for (int64_t i = first; i < last; i += step) {
    Block* const done = block;
    block = next, next = done;
    if (i + step < last) {
      cursor.fill(smaller(step, last - i - step), *next);
      if (ahead) prefetch_block(t, *next, k0, k1);
    }
    if (t.mean == nullptr)
      pack_gradients<false>(t, *block, k0, k1, scratch.g);
    else
      pack_gradients<true>(t, *block, k0, k1, scratch.g);
    for (int64_t r = 0; r < t.r; ++r)
      for (int64_t s = 0; s < t.s; s += shape.taps) {
        list_runs(t, shape, {r, s, shape.taps}, first_channel, *block, scratch.border);
        if (block->seen > 0)
          add_segment(shape, *block, k0, k1, out + (r * t.s + s) * shape.width, out_row,
                      scratch);
      }
  }
}

bool accumulate(const PositionProblem& t, int64_t first, int64_t last, int64_t k0, int64_t k1,
                float* out) {
  const Shape shape = make_shape(t);
  Scratch scratch(shape, k1 - k0);
  if (scratch.memory == nullptr) return false;
  const int64_t filter = t.r * t.s * shape.width;
  while (k0 < k1) {
    const int64_t end = smaller(k1, (k0 / shape.filters + 1) * shape.filters);
    accumulate_group(t, shape, first, last, k0, end, out, scratch);
    out += (end - k0) * filter;
    k0 = end;
  }
  return true;
}

// Few filters are shared out by positions: partial sums in a fixed number of parts, added in order.
constexpr int64_t kParts = 8, kFewFilters = 32;

bool by_positions(const PositionProblem& t) {
  const int64_t size = t.k * t.r * t.s * (t.c / t.groups);
  auto* partial = static_cast<float*>(std::malloc(sizeof(float) * size_t(kParts * size)));
  if (partial == nullptr) return false;
  bool done = true;
  parallel_ranges(0, kParts, 1, t.serial, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b)
      if (!accumulate(t, b * t.count / kParts, (b + 1) * t.count / kParts, 0, t.k,
                      partial + b * size))
        __atomic_store_n(&done, false, __ATOMIC_RELAXED);
  });
  for (int64_t b = 1; b < kParts; ++b)
    for (int64_t i = 0; i < size; ++i) partial[i] += partial[b * size + i];
  std::memcpy(t.out, partial, sizeof(float) * static_cast<size_t>(size));
  std::free(partial);
  return done;
}

bool by_filters(const PositionProblem& t) {
  const int64_t filter = t.r * t.s * (t.c / t.groups);
  bool done = true;
  constexpr int64_t kUnit = 16;
  parallel_ranges(0, (t.k + kUnit - 1) / kUnit, 1, t.serial, [&](int64_t from, int64_t to) {
    const int64_t k0 = from * kUnit, k1 = smaller(to * kUnit, t.k);
    if (!accumulate(t, 0, t.count, k0, k1, t.out + k0 * filter))
      __atomic_store_n(&done, false, __ATOMIC_RELAXED);
  });
  return done;
}

}  // namespace

bool position_weight_grad(const PositionProblem& t) {
  const int64_t size = t.k * t.r * t.s * (t.c / t.groups);
  if (size == 0) return true;
  if (t.count == 0) {
    std::memset(t.out, 0, sizeof(float) * static_cast<size_t>(size));
    return true;
  }
  return t.k <= kFewFilters && t.count >= 1024 ? by_positions(t) : by_filters(t);
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

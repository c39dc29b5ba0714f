// Random signs, Hadamard transform, nearest level, packing and scale of one block after the other.
#include "bucket_norm.h"
#include "hadamard.h"
#include "parallel.h"
#include "rotation.h"
#include "unrotate.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kGrain = 128;      // blocks
constexpr int64_t kPrefetch = 1024;  // components ahead
constexpr int kCellBits = 18;
constexpr int kCloseToOverflow = 100;  // exponent
constexpr float kLeastSquares = 0x1p-50f, kMostSquares = 0x1p50f;

SLIMGRAD_INLINE float sum_of(const Floats (&part)[4]) {
  return tree_sum((part[0] + part[2]) + (part[1] + part[3]));
}

SLIMGRAD_INLINE FloatLeaf smaller(FloatLeaf a, FloatLeaf b) {
#if defined(SLIMGRAD_ISA_avx512)
  return _mm512_maskz_min_ps(kAllLanes, a, b);
#elif defined(SLIMGRAD_ISA_avx2)
  return _mm256_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}
template <typename T>
SLIMGRAD_INLINE Pair<T> smaller(Pair<T> a, Pair<T> b) {
  return {smaller(a.low, b.low), smaller(a.high, b.high)};
}

// Of the squares of a block; `spread` sums the squares of the 64 sums that `squares` is made of.
struct Sums {
  float squares, spread;
};

// Signs and the first stages of the rotation.
SLIMGRAD_INLINE Sums begin_rotation(const float* x, Words signs, float* middle) {
  Floats squares[4]{};
  for (int far = 0; far < kFar; ++far) {
    const Words highest = signs << ((kFar - 1 - far) * kNear);
    Floats v[kNear];
#pragma GCC unroll 8
    for (int near = 0; near < kNear; ++near) {
      const float* from = x + (far * kNear + near) * 16;
      prefetch(from, kPrefetch);
      const Floats component = load_floats(from);
      squares[near & 3] = squares[near & 3] + component * component;
      v[near] = flipped(component, highest << (kNear - 1 - near));
    }
    first_stages(v);
#pragma GCC unroll 8
    for (int near = 0; near < kNear; ++near) store(middle + (far * kNear + near) * 16, v[near]);
  }
  const float all = sum_of(squares);
  for (Floats& each : squares) each = each * each;
  return {all, sum_of(squares)};
}

// Symbols of 4 bits, packed as they come: of four vectors, one in each quarter of the block.
class PackedNibbles {
 public:
  explicit PackedNibbles(int) {}
  SLIMGRAD_INLINE void put(int quarter, int, Words magnitude, Words component) {
    Words& dword = dword_[quarter];
    dword = masked_or(moved<kCellBits, 28>(magnitude), all_words(0x70000000u), dword >> 4);
    dword = masked_or(component, all_words(0x80000000u), dword);
  }
  SLIMGRAD_INLINE void finish(int, uint8_t* out) const {
    for (int quarter = 0; quarter < kFar; ++quarter) store(out + quarter * 64, dword_[quarter]);
  }

 private:
  Words dword_[kFar]{};
};

// Symbols of any width.
class BufferedSymbols {
 public:
  explicit BufferedSymbols(int bits) : bits_(bits) {}
  SLIMGRAD_INLINE void put(int far, int near, Words magnitude, Words component) {
    const Words sign = all_words(1u << (bits_ - 1));
    store(symbol_ + (far * kNear + near) * 16,
          masked_or(component >> (32 - bits_), sign, magnitude >> kCellBits));
  }
  SLIMGRAD_INLINE void finish(int bits, uint8_t* out) const { pack_block(symbol_, bits, out); }

 private:
  int bits_;
  alignas(64) uint32_t symbol_[kBlock];
};

// The tables of levels and of cells, each as long as its look-up.
struct Memory {
  float levels[8], values[16]{}, cells[16];
  explicit Memory(const RotateQuantizeArgs& args) {
    const int count = 1 << (args.bits - 1);
    for (int j = 0; j < 8; ++j) levels[j] = args.levels[j & (count - 1)];
    for (int j = 0; j < count; ++j) values[j] = levels[j], values[count + j] = -levels[j];
    __builtin_memcpy(cells, args.cells, sizeof cells);
  }
};

struct Tables {
  Lookup<8> levels;
  Lookup<16> values, cells;
  explicit SLIMGRAD_INLINE Tables(const Memory& memory)
      : levels(memory.levels), values(memory.values), cells(memory.cells) {}
};

// The last stages, then levels: fills `symbols`, returns <rotated, levels>. `steps` turns a
// rotated component into 2^-20 standard deviations.
template <typename Symbols>
SLIMGRAD_INLINE float finish_rotation(const float* middle, const Tables& tables, float steps,
                                      Symbols& symbols) {
  const Floats most = all_floats(0x1p22f - 1.0f), factor = all_floats(steps);
  Floats products[kFar]{};
  for (int near = 0; near < kNear; ++near) {
    Floats v[kFar];
#pragma GCC unroll 4
    for (int far = 0; far < kFar; ++far) v[far] = load_floats(middle + (far * kNear + near) * 16);
    last_stages(v);
#pragma GCC unroll 4
    for (int far = 0; far < kFar; ++far) {
      const Words component = as_words(v[far]);
      const Floats size = as_floats(component & all_words(kMagnitudeBits));
      const Words place = as_words(smaller(size * factor, most) + all_floats(0x1p23f));
      const Words magnitude = place + as_words(tables.cells[place >> kCellBits]);
      products[far] = products[far] + size * tables.levels[magnitude >> kCellBits];
      symbols.put(far, near, magnitude, component);
    }
  }
  return sum_of(products);
}

// A block that was divided by 2^exponent, so that float32 can square its squares.
struct Scaled {
  alignas(64) float x[kBlock];
  int exponent;
  bool finite;
};

__attribute__((noinline)) void scale_block(const float* x, Scaled& scaled) {
  LargestMagnitude magnitude;
  add_components(magnitude, x, kBlock);
  const uint32_t most = magnitude.bits();
  scaled.finite = most < kInfinityBits;
  scaled.exponent = 0;
  if (scaled.finite && most > 0)
    (void)__builtin_frexp(static_cast<double>(float_of(most)), &scaled.exponent);
  const double down = __builtin_ldexp(1.0, -scaled.exponent);
  for (int i = 0; i < kBlock; ++i) scaled.x[i] = static_cast<float>(x[i] * down);
}

// A block on its way.
struct Stage {
  alignas(64) float middle[kBlock];
  const float* x;
  int64_t block;
  BlockSigns signs;
  float squares, steps;
  bool twice;
};

template <typename Symbols>
class BlockQuantizer {
 public:
  BlockQuantizer(const RotateQuantizeArgs& args, const Memory& memory)
      : args_(args), tables_(memory) {}

  // Up to the last stages of the last rotation.
  SLIMGRAD_INLINE void begin(const float* x, int64_t block, Stage& stage) const {
    stage.x = x;
    stage.block = block;
    stage.signs = BlockSigns(args_.key, block);
    rotate(x, stage);
  }

  SLIMGRAD_INLINE void finish(const Stage& stage) const {
    uint8_t* out = args_.packed + stage.block * block_bytes(args_.bits);
    const bool inside = stage.squares >= kLeastSquares && stage.squares <= kMostSquares;
    const float scale =
        inside ? marked(unmarked_scale(stage, out), stage.twice) : scaled_block(stage, out);
    if (!(scale > 0.0f)) __builtin_memset(out, 0, static_cast<size_t>(block_bytes(args_.bits)));
    args_.scales[stage.block] = scale;
  }

 private:
  SLIMGRAD_INLINE void rotate(const float* x, Stage& stage) const {
    const Sums sums = begin_rotation(x, stage.signs.first, stage.middle);
    stage.squares = sums.squares;
    stage.twice = sums.spread > args_.spread * (sums.squares * sums.squares);
    if (stage.twice) join_rotations(stage.middle, stage.signs.second);
    const float variance = stage.twice ? sums.squares * kBlock : sums.squares;
    stage.steps = 0x1p20f / __builtin_sqrtf(variance);
  }

  SLIMGRAD_INLINE float unmarked_scale(const Stage& stage, uint8_t* out) const {
    Symbols symbols(args_.bits);
    const float projection = finish_rotation(stage.middle, tables_, stage.steps, symbols);
    symbols.finish(args_.bits, out);
    return stage.squares / projection;
  }

  // The lowest bit of a scale is that of a second rotation.
  static float marked(float scale, bool twice) {
    uint32_t bits;
    __builtin_memcpy(&bits, &scale, 4);
    return float_of((bits & ~1u) | twice);
  }

  __attribute__((noinline)) float scaled_block(const Stage& unscaled, uint8_t* out) const {
    Scaled scaled;
    scale_block(unscaled.x, scaled);
    if (!scaled.finite) return canonical_nan();
    Stage stage;
    stage.signs = unscaled.signs;
    rotate(scaled.x, stage);
    if (!(stage.squares > 0.0f)) return 0.0f;
    double scale = unmarked_scale(stage, out);
    scale *= __builtin_ldexp(1.0, scaled.exponent);
    if (scale > FLT_MAX) scale = FLT_MAX;
    if (scaled.exponent > kCloseToOverflow) {
      const double most = largest_decoded(out, stage.signs, stage.twice, scaled.x);
      const double limit = FLT_MAX * (1.0 - 0x1p-22) / most;
      if (limit < scale) scale = limit;
    }
    return marked(static_cast<float>(scale), stage.twice);
  }

  // Largest magnitude that the symbols stand for with scale 1.
  float largest_decoded(const uint8_t* in, const BlockSigns& signs, bool twice,
                        float* decoded) const {
    unrotate_block(in, args_.bits, tables_.values, signs, twice, 1.0f, decoded, Write{});
    LargestMagnitude magnitude;
    add_components(magnitude, decoded, kBlock);
    return float_of(magnitude.bits());
  }

  const RotateQuantizeArgs& args_;
  Tables tables_;
};

// The sums of a block are waited for while the next one is rotated.
template <typename Symbols>
void quantize_blocks(const RotateQuantizeArgs& args, int64_t first, int64_t last) {
  const Memory memory(args);
  const BlockQuantizer<Symbols> quantizer(args, memory);
  alignas(64) float padded[kBlock] = {};
  Stage stages[2];
  for (int64_t block = first; block <= last; ++block) {
    if (block < last) {
      const float* x = args.vector + block * kBlock;
      const int64_t left = args.n - block * kBlock;
      if (left < kBlock) {
        __builtin_memcpy(padded, x, static_cast<size_t>(left) * sizeof(float));
        x = padded;
      }
      quantizer.begin(x, block, stages[block & 1]);
    }
    if (block > first) quantizer.finish(stages[(block - 1) & 1]);
  }
}

}  // namespace

void rotate_quantize(const RotateQuantizeArgs& args) {
  parallel_ranges(0, (args.n + kBlock - 1) / kBlock, kGrain, args.serial,
                  [&](int64_t first, int64_t last) {
                    const IeeeArithmetic arithmetic;
                    if (args.bits == 4)
                      quantize_blocks<PackedNibbles>(args, first, last);
                    else
                      quantize_blocks<BufferedSymbols>(args, first, last);
                  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

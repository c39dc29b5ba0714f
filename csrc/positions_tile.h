// The inner loop of the position kernel: a tile of filters by input floats, summed over positions.
#pragma once
#include <cstdint>

#if defined(SLIMGRAD_ISA_avx2) || defined(SLIMGRAD_ISA_avx512)
#include <immintrin.h>
#endif

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

#if defined(SLIMGRAD_ISA_avx512)
constexpr int kTileLanes = 16, kTileFilters = 8;
typedef __m512 TileVector;
#elif defined(SLIMGRAD_ISA_avx2)
constexpr int kTileLanes = 8, kTileFilters = 4;
typedef __m256 TileVector;
#else
constexpr int kTileLanes = 4, kTileFilters = 4;
typedef float TileVector __attribute__((vector_size(16)));
#endif
constexpr int kTileVectors = 3;
constexpr int kTileFloats = kTileVectors * kTileLanes;

typedef TileVector LooseTileVector __attribute__((aligned(4), may_alias));

// The other kernels round every product, so that bytes agree everywhere. A gradient need not, and
// fused multiply-add doubles the speed.
inline __attribute__((always_inline)) TileVector fused(TileVector a, TileVector b, TileVector c) {
#if defined(SLIMGRAD_ISA_avx512)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(SLIMGRAD_ISA_avx2)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

// out[f][j] += sum over i < count of g[chosen[i]][f] * run[i][j] for f < kTileFilters and
// j < Vectors * kTileLanes. Out of line and fully unrolled, or the sums live in memory.
template <int Vectors>
__attribute__((noinline)) void add_tile(const float* g, const int32_t* chosen,
                                        const float* const* run, int64_t offset, int64_t count,
                                        float* out, int64_t out_row) {
  TileVector sum[kTileFilters][Vectors];
#pragma GCC unroll 8
  for (int f = 0; f < kTileFilters; ++f)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v)
      sum[f][v] = *reinterpret_cast<const LooseTileVector*>(out + f * out_row + v * kTileLanes);
  for (int64_t i = 0; i < count; ++i) {
    const float* x = run[i] + offset;
    const float* factor = g + int64_t{chosen[i]} * kTileFilters;
    TileVector part[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v)
      part[v] = *reinterpret_cast<const LooseTileVector*>(x + v * kTileLanes);
#pragma GCC unroll 8
    for (int f = 0; f < kTileFilters; ++f) {
      const TileVector each = factor[f] - TileVector{};
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[f][v] = fused(each, part[v], sum[f][v]);
    }
  }
#pragma GCC unroll 8
  for (int f = 0; f < kTileFilters; ++f)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v)
      *reinterpret_cast<LooseTileVector*>(out + f * out_row + v * kTileLanes) = sum[f][v];
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

// Transposition of small matrices, in 4 by 4 pieces that every instruction set has.
#pragma once
#include "topone_vector.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef float LooseQuad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t QuadIndex __attribute__((vector_size(16)));

#if defined(__clang__)
#define SLIMGRAD_PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SLIMGRAD_PICK(a, b, ...) __builtin_shuffle(a, b, QuadIndex{__VA_ARGS__})
#endif

inline void transpose_quads(const float* from, int64_t from_row, float* to, int64_t to_row) {
  Quad row[4];
  for (int i = 0; i < 4; ++i) row[i] = *reinterpret_cast<const LooseQuad*>(from + i * from_row);
  const Quad a = SLIMGRAD_PICK(row[0], row[1], 0, 4, 1, 5);
  const Quad b = SLIMGRAD_PICK(row[2], row[3], 0, 4, 1, 5);
  const Quad c = SLIMGRAD_PICK(row[0], row[1], 2, 6, 3, 7);
  const Quad d = SLIMGRAD_PICK(row[2], row[3], 2, 6, 3, 7);
  *reinterpret_cast<LooseQuad*>(to) = SLIMGRAD_PICK(a, b, 0, 1, 4, 5);
  *reinterpret_cast<LooseQuad*>(to + to_row) = SLIMGRAD_PICK(a, b, 2, 3, 6, 7);
  *reinterpret_cast<LooseQuad*>(to + 2 * to_row) = SLIMGRAD_PICK(c, d, 0, 1, 4, 5);
  *reinterpret_cast<LooseQuad*>(to + 3 * to_row) = SLIMGRAD_PICK(c, d, 2, 3, 6, 7);
}

#undef SLIMGRAD_PICK

// to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns.
inline void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                      int64_t to_row) {
  const int64_t whole_rows = rows & ~int64_t{3}, whole_columns = columns & ~int64_t{3};
  // Strips of 16 rows: one cache line of every row of the result.
  for (int64_t strip = 0; strip < whole_rows; strip += 16)
    for (int64_t j = 0; j < whole_columns; j += 4)
      for (int64_t i = strip; i < smaller(strip + 16, whole_rows); i += 4)
        transpose_quads(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      to[j * to_row + i] = from[i * from_row + j];
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

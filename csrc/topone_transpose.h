// Transposition of small matrices, in 4 by 4 pieces that every instruction set has.
#pragma once
#include "topone_vector.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef float LooseQuad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t QuadIndex __attribute__((vector_size(16)));

inline void transpose_quads(const float* from, int64_t from_row, float* to, int64_t to_row) {
  Quad row[4];
  for (int i = 0; i < 4; ++i) row[i] = *reinterpret_cast<const LooseQuad*>(from + i * from_row);
  const QuadIndex low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, head = {0, 1, 4, 5}, tail = {2, 3, 6, 7};
  const Quad a = __builtin_shuffle(row[0], row[1], low);
  const Quad b = __builtin_shuffle(row[2], row[3], low);
  const Quad c = __builtin_shuffle(row[0], row[1], high);
  const Quad d = __builtin_shuffle(row[2], row[3], high);
  *reinterpret_cast<LooseQuad*>(to) = __builtin_shuffle(a, b, head);
  *reinterpret_cast<LooseQuad*>(to + to_row) = __builtin_shuffle(a, b, tail);
  *reinterpret_cast<LooseQuad*>(to + 2 * to_row) = __builtin_shuffle(c, d, head);
  *reinterpret_cast<LooseQuad*>(to + 3 * to_row) = __builtin_shuffle(c, d, tail);
}

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

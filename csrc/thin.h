// Arguments of products of a matrix and a thin one.
#pragma once
#include <cstdint>

#include "dispatch.h"

namespace slimgrad {

// Sums are over sixteen lanes, each in ascending order, which are then added in halves; or, for the
// transposed product, over rows in ascending order. Products and sums are rounded one by one.
struct ThinArgs {
  const float* matrix;  // rows x columns
  int64_t rows;
  int64_t columns;
  int64_t rank;
  const float* factor;  // rank x columns; rows x rank for the transposed product
  float* out;           // rows x rank; rank x columns for the transposed product
};

SLIMGRAD_DECLARE(void thin_product(const ThinArgs& args))
SLIMGRAD_DECLARE(void thin_product_transposed(const ThinArgs& args))

}  // namespace slimgrad

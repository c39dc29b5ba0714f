// The step of integers: a multiple of the bucket's root mean square, or more where that would leave
// the largest component without an integer of its own.
#pragma once
#include <cmath>

#include "bucket_norm.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr double kHeadroom = 1.0 + 0x1p-20;  // more than the roundings on the way to an integer

class StepOfIntegers {
 public:
  template <int kHalf>
  SLIMGRAD_INLINE void add(Floats a, Floats b) {
    squares_.template add<kHalf>(a, b);
    largest_square_ = larger(larger(a * a, b * b), largest_square_);
  }
  // `x` and `n` are the bucket whose components were given.
  SLIMGRAD_INLINE float scale(const QuantizeArgs& args, const float* x, int64_t n) const {
    const float squares = squares_.sum();
    float norm, most;
    if (SumOfSquares::is_exact(squares)) {
      norm = __builtin_sqrtf(squares);
      // The rounded root of a rounded square is the number itself.
      most = __builtin_sqrtf(largest_lane(largest_square_));
    } else {
      LargestMagnitude largest;
      add_components(largest, x, n);
      norm = careful_l2_norm(x, n);
      most = largest.scale(x, n);
    }
    if (!(most > 0.0f)) return most;
    const float of_rms =
        norm * static_cast<float>(args.step_rms / std::sqrt(static_cast<double>(n)));
    const float of_largest = most * static_cast<float>(kHeadroom / args.magnitudes);
    float step = of_rms > of_largest ? of_rms : of_largest;
    step = step > FLT_MIN ? step : FLT_MIN;
    return step < FLT_MAX ? step : FLT_MAX;
  }

 private:
  SumOfSquares squares_;
  Floats largest_square_{};
};

// The scale of a bucket whose components were given to `norm`.
template <typename NormType>
SLIMGRAD_INLINE float finished(const NormType& norm, const QuantizeArgs&, const float* x,
                               int64_t n) {
  return norm.scale(x, n);
}
SLIMGRAD_INLINE float finished(const StepOfIntegers& norm, const QuantizeArgs& args,
                               const float* x, int64_t n) {
  return norm.scale(args, x, n);
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

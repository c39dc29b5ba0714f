// Unbiased rounding of a fraction in [0, 1] to a level index, or of a number to an integer.
//
// A grid's round() leaves the index kShift bits up, above bits that its caller masks off.
#pragma once
#include "fraction.h"
#include "quantize.h"
#include "random_words.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

SLIMGRAD_INLINE Fraction with_sign(const Fraction& f) {
  return {f.keep == 0 ? 0 : 0xFFFFFFFFu, f.pre, f.inverse};
}

// A grid of magnitudes takes fractions without sign, unless kTakesSigns; the sign of a symbol is that
// of the component.
struct Magnitudes {
  static constexpr bool kSigned = false, kTakesSigns = false;
  static Fraction prepared(const Fraction& fraction) { return fraction; }
  static SLIMGRAD_INLINE Words magnitude(Words rounded) { return rounded; }
  static SLIMGRAD_INLINE Words signed_like(Words, Words component) { return component; }
};

// Random bits added to a signed fixed point with 16 bits behind the point.
struct SignedIntegers {
  static constexpr bool kSigned = true, kTakesSigns = true;
  static constexpr int kShift = 16;
  static Fraction prepared(const Fraction& f) { return with_sign(f); }
  template <int Half>
  static SLIMGRAD_INLINE Words rounded(Floats fixed, Words random) {
    return nearest_integers(fixed) + (Half == 0 ? random & all_words(0xFFFF) : random >> 16);
  }
  static SLIMGRAD_INLINE Words magnitude(Words rounded) {
    return absolute(shifted_right_signed(rounded, kShift)) << kShift;
  }
  static SLIMGRAD_INLINE Words signed_like(Words rounded, Words) { return rounded; }
};

// Levels j / m.
class UniformGrid : public SignedIntegers {
 public:
  explicit SLIMGRAD_INLINE UniformGrid(const QuantizeArgs& args)
      : steps_(all_floats(static_cast<float>(args.magnitudes) * 65536.0f)) {}
  template <int Half>
  SLIMGRAD_INLINE Words round(Floats fraction, Words random) const {
    return rounded<Half>(fraction * steps_, random);
  }

 private:
  Floats steps_;
};

// Integers of a step that keeps what is rounded within the magnitudes of a symbol.
class IntegerGrid : public SignedIntegers {
 public:
  explicit SLIMGRAD_INLINE IntegerGrid(const QuantizeArgs&) {}
  static Fraction prepared(const Fraction& f) {
    return with_sign({f.keep, f.pre, f.inverse * 65536.0f});
  }
  template <int Half>
  SLIMGRAD_INLINE Words round(Floats fixed, Words random) const {
    return rounded<Half>(fixed, random);
  }
};

// Levels 2^(j-1-s): random bits added below the exponent carry into it with the right probability.
// A fraction under the smallest level is shifted up by it, the others are doubled, so that the
// exponent counts levels from a constant in both cases; the constant is taken off by bits that lie
// above the random ones.
class ExponentialGrid : public Magnitudes {
 public:
  static constexpr int kShift = 23;
#if defined(SLIMGRAD_ISA_avx512)
  // Signs stay where they are, which saves taking them off.
  static constexpr bool kTakesSigns = true;
  static Fraction prepared(const Fraction& f) { return with_sign(f); }
#endif
  explicit SLIMGRAD_INLINE ExponentialGrid(const QuantizeArgs& args)
      : smallest_(all_floats(args.levels[1])),
        base_(all_words(64u - (static_cast<uint32_t>(128 - args.magnitudes) << 23))) {}
  template <int Half>
  SLIMGRAD_INLINE Words round(Floats fraction, Words random) const {
#if defined(SLIMGRAD_ISA_avx512)
    const Floats shifted = fraction + larger_magnitude(fraction, smallest_);
#else
    const Floats shifted = fraction + larger(fraction, smallest_);
#endif
    const Words placed = Half == 0 ? random << 7 : random >> 9;
    return as_words(shifted) + masked_or(placed, all_words(0xFFFFu << 7), base_);
  }

 private:
  Floats smallest_;
  Words base_;
};

// Any ascending levels, kSize of them at most: a binary search, then one comparison with the random
// bits.
template <int kSize>
class TableGrid : public Magnitudes {
 public:
  static constexpr int kShift = 0;
  struct Memory {
    float below[kSize];         // levels but the last, then infinity
    float inverse_gaps[kSize];  // 1 / (next level - level)
    explicit Memory(const QuantizeArgs& args) {
      for (int j = 0; j < kSize; ++j) {
        const bool inside = j < args.magnitudes;
        below[j] = inside ? args.levels[j] : __builtin_inff();
        inverse_gaps[j] =
            inside ? static_cast<float>(1.0 / (static_cast<double>(args.levels[j + 1]) -
                                               static_cast<double>(args.levels[j])))
                   : 0.0f;
      }
    }
  };
  explicit SLIMGRAD_INLINE TableGrid(const Memory& memory)
      : below_(memory.below), inverse_gaps_(memory.inverse_gaps) {}
  template <int Half>
  SLIMGRAD_INLINE Words round(Floats fraction, Words random) const {
    random = Half == 0 ? random & all_words(0xFFFF) : random >> 16;
    Words j{};
#pragma GCC unroll 8
    for (uint32_t step = kSize / 2; step >= 1; step /= 2) {
      const Words candidate = j | all_words(step);
      j = select(less_equal(below_[candidate], fraction), candidate, j);
    }
    const Floats chance = (fraction - below_[j]) * inverse_gaps_[j];
    const auto up = less(to_floats(random) + all_floats(0.5f), chance * all_floats(65536.0f));
    return j + select(up, all_words(1), Words{});
  }

 private:
  Lookup<kSize> below_, inverse_gaps_;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

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

// A grid of magnitudes takes fractions without sign; the sign of a symbol is that of the component.
struct Magnitudes {
  static Fraction prepared(const Fraction& fraction) { return fraction; }
  static SLIMGRAD_INLINE Words magnitude(Words rounded) { return rounded; }
  static SLIMGRAD_INLINE Words signed_like(Words, Words component) { return component; }
};

// Levels j / m: one addition of random bits below a fixed point.
class UniformGrid : public Magnitudes {
 public:
  static constexpr int kShift = 16;
  explicit SLIMGRAD_INLINE UniformGrid(const QuantizeArgs& args)
      : steps_(all_floats(static_cast<float>(args.magnitudes) * 65536.0f)) {}
  template <int Half>
  SLIMGRAD_INLINE Words round(Floats fraction, Words random) const {
    // Adding 2^23 leaves the nearest integer below the exponent, which the other addend takes off.
    const Words fixed = as_words(fraction * steps_ + all_floats(0x1p23f));
    const Words base = all_words(0u - 0x4B000000u);
    return fixed + (Half == 0 ? masked_or(random, all_words(0xFFFF), base) : (random >> 16) | base);
  }

 private:
  Floats steps_;
};

// Levels 2^(j-1-s): random bits added below the exponent carry into it with the right probability.
// A fraction under the smallest level is shifted up by it, the others are doubled, so that the
// exponent counts levels from a constant in both cases; the constant is taken off by bits that lie
// above the random ones.
class ExponentialGrid : public Magnitudes {
 public:
  static constexpr int kShift = 23;
  explicit SLIMGRAD_INLINE ExponentialGrid(const QuantizeArgs& args)
      : smallest_(all_floats(args.levels[1])),
        base_(all_words(64u - (static_cast<uint32_t>(128 - args.magnitudes) << 23))) {}
  template <int Half>
  SLIMGRAD_INLINE Words round(Floats fraction, Words random) const {
    const Floats shifted = fraction + larger(fraction, smallest_);
    const Words placed = Half == 0 ? random << 7 : random >> 9;
    return as_words(shifted) + masked_or(placed, all_words(0xFFFFu << 7), base_);
  }

 private:
  Floats smallest_;
  Words base_;
};

// Signed integers: random bits added to a fixed point with 16 bits behind the point. The step keeps
// what is rounded within the magnitudes of a symbol.
class IntegerGrid {
 public:
  static constexpr int kShift = 0;
  explicit SLIMGRAD_INLINE IntegerGrid(const QuantizeArgs&) {}
  static Fraction prepared(const Fraction& f) {
    return {f.keep == 0 ? 0 : 0xFFFFFFFFu, f.pre, f.inverse * 65536.0f};
  }
  template <int Half>
  SLIMGRAD_INLINE Words round(Floats fixed, Words random) const {
    random = Half == 0 ? random & all_words(0xFFFF) : random >> 16;
    return shifted_right_signed(nearest_integers(fixed) + random, 16);
  }
  static SLIMGRAD_INLINE Words magnitude(Words rounded) { return absolute(rounded); }
  static SLIMGRAD_INLINE Words signed_like(Words rounded, Words) { return rounded; }
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

// A component as a fraction of its bucket's norm.
#pragma once
#include "bucket_norm.h"
#include "lane_layout.h"
#include "quantize.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

// What turns a component into a fraction of its bucket's norm. No bit of it is kept (the fraction
// is zero) where the norm is zero or not a number. No fraction exceeds 1: rounding is monotonic and
// the rounded root of a rounded square is the number itself, so a norm is never below a component;
// and a product of at most 1 + 2^-24, which is what the rounded inverse can give, rounds to 1.
struct Fraction {
  uint32_t keep;
  float pre, inverse;
};

SLIMGRAD_INLINE Fraction fraction_of(float norm) {
  if (!(norm > 0.0f)) return {0, 1.0f, 0.0f};
  const float pre = norm < 0x1p-100f ? 0x1p100f : norm > 0x1p100f ? 0x1p-100f : 1.0f;
  return {kMagnitudeBits, pre, 1.0f / (norm * pre)};
}

// One fraction for a whole block, of a norm that needs no `pre`.
class SharedFraction {
 public:
  explicit SLIMGRAD_INLINE SharedFraction(const Fraction& f)
      : keep_(all_words(f.keep)), inverse_(all_floats(f.inverse)) {}
  SLIMGRAD_INLINE Floats operator()(Words bits) const { return as_floats(bits & keep_) * inverse_; }
  // Of a norm that is a number.
  SLIMGRAD_INLINE Floats with_sign(Words bits) const { return as_floats(bits) * inverse_; }

 private:
  Words keep_;
  Floats inverse_;
};

// A fraction for every component of a block in which buckets may begin; zero behind the last. What
// `prepared` makes of a bucket's fraction is used.
class SpreadFraction {
 public:
  SpreadFraction(const QuantizeArgs& args, int64_t first, Fraction (*prepared)(const Fraction&)) {
    const int64_t end = first + kBlock < args.n ? first + kBlock : args.n;
    for (int64_t e = first; e < end;) {
      const int64_t bucket = e / args.bucket_size;
      const int64_t next = (bucket + 1) * args.bucket_size;
      const Fraction f = prepared(fraction_of(args.scales[bucket]));
      for (const int64_t stop = next < end ? next : end; e < stop; ++e) {
        keep_[e - first] = f.keep;
        pre_[e - first] = f.pre;
        inverse_[e - first] = f.inverse;
      }
    }
    for (int64_t i = end - first; i < kBlock; ++i) keep_[i] = 0, pre_[i] = inverse_[i] = 0.0f;
  }
  SLIMGRAD_INLINE Floats operator()(Words bits, int i) const {
    return as_floats(bits & load_words(keep_ + i)) * load_floats(pre_ + i) *
           load_floats(inverse_ + i);
  }
  // No bit set where the norm is zero or not a number, and behind the last component.
  SLIMGRAD_INLINE Words kept(int i) const { return load_words(keep_ + i); }

 private:
  alignas(64) uint32_t keep_[kBlock];
  alignas(64) float pre_[kBlock], inverse_[kBlock];
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

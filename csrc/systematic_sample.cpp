// Choice of positions with probability proportional to a score, one random number for all.
#include "positions.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kLanes = 8;  // sums side by side: one alone would wait for itself

struct Part {
  double rest;
  double certain;
};

// Sum of the scores below `threshold`, and how many are not.
Part below(const SampleProblem& t, double threshold) {
  double rest[kLanes] = {};
  double certain[kLanes] = {};
  const auto add = [&](int64_t i, int lane) {
    const double score = t.score[i];
    const bool above = score >= threshold;
    certain[lane] += above ? 1.0 : 0.0;
    rest[lane] += above ? 0.0 : score;
  };
  int64_t i = 0;
  for (; i + kLanes <= t.rows; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  for (; i < t.rows; ++i) add(i, 0);
  Part sum = {0.0, 0.0};
  for (int lane = 0; lane < kLanes; ++lane) sum.rest += rest[lane], sum.certain += certain[lane];
  return sum;
}

// The threshold at which sum of min(1, score / threshold) is `wanted`, to about one percent: scores
// above it are certain. Any threshold gives an unbiased sample, of one size or another.
double threshold_of(const SampleProblem& t) {
  double threshold = below(t, __builtin_inf()).rest / t.wanted;
  // Each pass takes out the scores that became certain, which lowers the threshold.
  for (int pass = 0; pass < 64; ++pass) {
    const Part part = below(t, threshold);
    const double left = t.wanted - part.certain;
    if (left <= 0.0 || part.rest <= 0.0) break;
    const double next = part.rest / left;
    const bool close = !(next < 0.99 * threshold);
    if (next < threshold) threshold = next;
    if (close) break;
  }
  return threshold;
}

}  // namespace

int64_t systematic_sample(const SampleProblem& t) {
  const double threshold = threshold_of(t);
  int64_t count = 0;
  if (!(threshold > 0.0)) return 0;
  const double inverse = 1.0 / threshold;
  double reached = t.start;
  for (int64_t i = 0; i < t.rows; ++i) {
    const double score = t.score[i];
    if (score >= threshold) {
      t.position[count] = static_cast<int32_t>(i);
      t.weight[count++] = 1.0f;
      continue;
    }
    reached += score * inverse;
    if (reached < 1.0) continue;
    reached -= 1.0;
    t.position[count] = static_cast<int32_t>(i);
    t.weight[count++] = static_cast<float>(threshold / score);
  }
  return count;
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

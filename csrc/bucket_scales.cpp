// The scales of all buckets and nothing else.
#include "buckets.h"
#include "tiles.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {

void bucket_scales(const BucketArgs& args) {
  over_ranges(args.n, args.bucket_size, args.serial,
              [&](int64_t first, int64_t last) { take_norms(args, first, last); });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

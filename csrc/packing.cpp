// Symbols, one a byte, to the packed layout and back, by way of a block of one a dword.
#include "packing.h"

#include "lane_layout.h"
#include "parallel.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int64_t kGrain = 262144;

// Calls work(first, count) for every block of n components.
template <typename Work>
void for_each_block(int64_t n, bool serial, const Work& work) {
  parallel_ranges(0, (n + kBlock - 1) / kBlock, kGrain / kBlock, serial,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t e = begin * kBlock; e < end * kBlock; e += kBlock)
                      work(e, n - e < kBlock ? static_cast<int>(n - e) : kBlock);
                  });
}

}  // namespace

void pack_symbols(const PackArgs& args) {
  for_each_block(args.n, args.serial, [&](int64_t first, int count) {
    alignas(64) uint32_t wide[kBlock];
    const uint8_t* in = args.symbols + first;
    uint8_t* out = args.packed + first / kBlock * block_bytes(args.bits);
    if (count == kBlock) {
      for (int i = 0; i < kBlock; ++i) wide[i] = in[i];
      pack_block(wide, args.bits, out);
    } else {
      for (int i = 0; i < count; ++i) wide[i] = in[i];
      pack_bit_string(wide, count, args.bits, out);
    }
  });
}

void unpack_symbols(const UnpackArgs& args) {
  for_each_block(args.n, args.serial, [&](int64_t first, int count) {
    alignas(64) uint32_t wide[kBlock];
    const uint8_t* in = args.packed + first / kBlock * block_bytes(args.bits);
    uint8_t* out = args.symbols + first;
    if (count == kBlock) {
      unpack_block(in, args.bits, wide);
      for (int i = 0; i < kBlock; ++i) out[i] = static_cast<uint8_t>(wide[i]);
    } else {
      unpack_bit_string(in, count, args.bits, wide);
      for (int i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(wide[i]);
    }
  });
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

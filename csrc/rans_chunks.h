// Chunks side by side: what the entropy coders share around the coding of one.
#pragma once
#include "parallel.h"
#include "rans_step.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

inline int64_t chunk_count(int64_t n) { return (n + kChunkSymbols - 1) / kChunkSymbols; }
inline int64_t chunk_symbols(int64_t n, int64_t chunk) {
  const int64_t left = n - chunk * kChunkSymbols;
  return left < kChunkSymbols ? left : kChunkSymbols;
}
inline const uint8_t* chunk_start(const uint8_t* packed, const CodeArgs& code, int64_t chunk) {
  return packed + chunk * (kChunkSymbols / kBlock) * block_bytes(code.bits);
}

// Puts the states before the words that begin at `to`; null when they begin before the limit.
inline uint8_t* finish_chunk(const uint32_t* states, int count, uint8_t* to,
                             const uint8_t* limit) {
  if (to - 4 * count < limit) return nullptr;
  store_states(states, count, to - 4 * count);
  return to - 4 * count;
}

// Runs encode(chunk, to, limit) over all chunks, where encode writes words from `to` downwards, then
// `states_of(symbols)` states, and returns where they begin, or null once words lie beyond the
// limit. The chunks end up one behind another at the end of `out`; returns their bytes, or -1.
template <typename Encode, typename StatesOf>
int64_t encode_chunks(const EncodeArgs& args, const StatesOf& states_of, const Encode& encode) {
  const int64_t count = chunk_count(args.code.n);
  constexpr uint32_t kNoRoom = ~0u;
  uint8_t* const out = args.out + kMargin;
  const auto state_bytes = [&](int64_t chunk) {
    return 4 * static_cast<int64_t>(states_of(chunk_symbols(args.code.n, chunk)));
  };
  parallel_ranges(0, count, 1, args.code.serial, [&](int64_t begin, int64_t end) {
    const IeeeArithmetic arithmetic;
    const uint8_t* limit = out + begin * args.room;
    uint8_t* to = out + end * args.room;
    for (int64_t chunk = end - 1; chunk >= begin; --chunk) {
      uint8_t* start = to == nullptr ? nullptr : encode(chunk, to, limit);
      args.words[chunk] = kNoRoom;
      if (start != nullptr) {
        args.words[chunk] = static_cast<uint32_t>((to - start - state_bytes(chunk)) / 2);
        args.places[chunk] = start - out;
      }
      to = start;
    }
  });
  uint8_t* to = out + count * args.room;
  int64_t bytes = 0;
  for (int64_t chunk = count - 1; chunk >= 0; --chunk) {
    if (args.words[chunk] == kNoRoom) return -1;
    const int64_t size = 2 * int64_t{args.words[chunk]} + state_bytes(chunk);
    to -= size;
    bytes += size;
    if (to != out + args.places[chunk])
      __builtin_memmove(to, out + args.places[chunk], static_cast<size_t>(size));
  }
  return bytes;
}

// Runs decode(chunk, begin, end) over all chunks; it is false for a chunk that is no encoder's.
template <typename Decode>
void decode_chunks(const DecodeArgs& args, const Decode& decode) {
  parallel_ranges(0, chunk_count(args.code.n), 1, args.code.serial, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      args.failed[chunk] =
          !decode(chunk, args.payload + args.places[chunk], args.payload + args.places[chunk + 1]);
      if (args.failed[chunk]) return;
    }
  });
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad

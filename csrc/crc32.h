// The CRC-32 of gzip and PNG: reflected polynomial 0xEDB88320, all ones before and behind.
#pragma once
#include <cstddef>
#include <cstdint>

namespace slimgrad {

// Of the bytes that `start` is the checksum of, followed by `size` bytes at `data`; 0 for no bytes.
uint32_t crc32(uint32_t start, const uint8_t* data, size_t size);

}  // namespace slimgrad

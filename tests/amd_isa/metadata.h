// What a code object's note says of its kernels: MessagePack.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct Argument { uint32_t offset, size; std::string kind; };
struct Metadata {
    std::string name;
    std::vector<Argument> arguments;
    uint32_t block_limit = 1024;
};
bool read_metadata(const uint8_t *bytes, size_t size, std::vector<Metadata> &found); // of all kernels

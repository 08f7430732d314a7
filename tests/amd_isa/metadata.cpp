// MessagePack, as far as code objects use it.
#include "metadata.h"
#include <map>
#include <stdexcept>

namespace {
struct Value {
    int64_t number = 0;
    std::string text;
    std::vector<Value> items;
    std::map<std::string, Value> members;
};
struct NoteReader {
    const uint8_t *at, *end;
    uint64_t big(int bytes)
    {
        if (end - at < bytes) throw std::runtime_error("cut short");
        uint64_t x = 0;
        while (bytes--) x = x << 8 | *at++;
        return x;
    }
    Value text(size_t size)
    {
        if ((size_t)(end - at) < size) throw std::runtime_error("cut short");
        Value v;
        v.text.assign((const char *)at, size);
        at += size;
        return v;
    }
    Value list(size_t count)
    {
        Value v;
        while (count--) v.items.push_back(value());
        return v;
    }
    Value map(size_t count)
    {
        Value v;
        while (count--) {
            const std::string key = value().text;
            v.members[key] = value();
        }
        return v;
    }
    Value number(int64_t x)
    {
        Value v;
        v.number = x;
        return v;
    }
    Value value()
    {
        const uint8_t c = (uint8_t)big(1);
        if (c < 0x80) return number(c);
        if (c < 0x90) return map(c & 15);
        if (c < 0xa0) return list(c & 15);
        if (c < 0xc0) return text(c & 31);
        if (c >= 0xe0) return number((int8_t)c);
        switch (c) {
        case 0xc0: case 0xc2: return number(0);
        case 0xc3: return number(1);
        case 0xcc: return number((int64_t)big(1));
        case 0xcd: return number((int64_t)big(2));
        case 0xce: return number((int64_t)big(4));
        case 0xcf: return number((int64_t)big(8));
        case 0xd0: return number((int8_t)big(1));
        case 0xd1: return number((int16_t)big(2));
        case 0xd2: return number((int32_t)big(4));
        case 0xd3: return number((int64_t)big(8));
        case 0xd9: return text(big(1));
        case 0xda: return text(big(2));
        case 0xdb: return text(big(4));
        case 0xdc: return list(big(2));
        case 0xdd: return list(big(4));
        case 0xde: return map(big(2));
        case 0xdf: return map(big(4));
        }
        throw std::runtime_error("a kind of value that code objects don't have");
    }
};
}

bool read_metadata(const uint8_t *bytes, size_t size, std::vector<Metadata> &found)
{
    try {
        NoteReader reader{bytes, bytes + size};
        Value root = reader.value();
        for (Value &kernel : root.members["amdhsa.kernels"].items) {
            Metadata m;
            m.name = kernel.members[".name"].text;
            m.block_limit = (uint32_t)kernel.members[".max_flat_workgroup_size"].number;
            for (Value &a : kernel.members[".args"].items)
                m.arguments.push_back({(uint32_t)a.members[".offset"].number, (uint32_t)a.members[".size"].number,
                                       a.members[".value_kind"].text});
            found.push_back(m);
        }
    } catch (const std::runtime_error &) {
        return false;
    }
    return true;
}

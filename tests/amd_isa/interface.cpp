// What the emulated runtime calls, found by name in the executor's library.
#include "isa.h"
#include <cstdio>
#include <set>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char *isa_target() { return target_name; }

// Null, with words in `why`, where the image isn't one of this target's.
EXPORT CodeObject *isa_load(const char *image, size_t size, char *why, size_t room)
{
    auto object = std::make_unique<CodeObject>();
    const std::string words = object->read(image, size);
    snprintf(why, room, "%s", words.c_str());
    return words.empty() ? object.release() : nullptr;
}
EXPORT void isa_unload(CodeObject *object) { delete object; }

// The address of a variable of the code object; 0 if it has none of that name.
EXPORT uint64_t isa_symbol(CodeObject *object, const char *name, uint64_t *size)
{
    const auto found = object->symbols.find(name);
    if (found == object->symbols.end()) return 0;
    *size = object->sizes[name];
    return (uint64_t)object->base + found->second;
}

// Decodes all functions; the number of instructions, and in `words` the names of those that there are. 0, with words
// about the first one, where one isn't known.
EXPORT uint64_t isa_decode(CodeObject *object, char *words, size_t room)
{
    std::string why;
    std::set<std::string> names;
    uint64_t count = 0;
    for (const auto &[name, start] : object->symbols) {
        const uint64_t end = start + object->sizes[name];
        bool is_code = false;
        for (const auto &[first, past] : object->code) is_code |= start >= first && end <= past;
        for (uint64_t at = start; is_code && at < end; ++count) {
            const Instruction *i = decode(*object, at, why);
            if (!i) {
                snprintf(words, room, "%s: %s", name.c_str(), why.c_str());
                return 0;
            }
            names.insert(i->operation->name);
            if (i->second) names.insert(i->second->operation->name);
            at = i->behind;
        }
    }
    for (const std::string &name : names) why += (why.empty() ? "" : " ") + name;
    snprintf(words, room, "%s", why.c_str());
    return count;
}

EXPORT Kernel *isa_kernel(CodeObject *object, const char *name, char *why, size_t room)
{
    const auto found = object->symbols.find(std::string(name) + ".kd");
    if (found == object->symbols.end() || object->sizes[found->first] != 64) {
        std::string all;
        for (const Metadata &m : object->metadata) all += (all.empty() ? "" : ", ") + m.name;
        snprintf(why, room, "it has no kernel %s, but %s", name, all.c_str());
        return nullptr;
    }
    const char *at = object->base + found->second;
    auto kernel = std::make_unique<Kernel>();
    kernel->object = object;
    kernel->name = name;
    Descriptor &d = kernel->descriptor;
    memcpy(&d.group_bytes, at, 4);
    memcpy(&d.private_bytes, at + 4, 4);
    memcpy(&d.kernarg_bytes, at + 8, 4);
    int64_t entry;
    memcpy(&entry, at + 16, 8);
    d.entry = found->second + entry;
    memcpy(&d.rsrc3, at + 44, 4);
    memcpy(&d.rsrc1, at + 48, 4);
    memcpy(&d.rsrc2, at + 52, 4);
    memcpy(&d.properties, at + 56, 2);
    memcpy(&d.preload, at + 58, 2);
    kernel->wave_lanes = !is_cdna && d.properties >> 10 & 1 ? 32 : 64;
    const int granule = is_cdna || kernel->wave_lanes == 32 ? 8 : 4, total = ((d.rsrc1 & 63) + 1) * granule;
    kernel->registers = is_cdna ? ((d.rsrc3 & 63) + 1) * 4 : total;
    if (kernel->registers > total) kernel->registers = total;
    kernel->accumulators = total - kernel->registers;
    // all of it, also what no launch may reach
    std::string words;
    const uint64_t start = object->symbols[name], end = start + object->sizes[name];
    for (uint64_t at = start; at < end && words.empty();)
        if (const Instruction *i = decode(*object, at, words)) at = i->behind;
    snprintf(why, room, "%s", words.c_str());
    return words.empty() ? kernel.release() : nullptr;
}
EXPORT void isa_forget(Kernel *kernel) { delete kernel; }

EXPORT int isa_run(Kernel *kernel, Launch *launch) { return !run(*kernel, *launch); }

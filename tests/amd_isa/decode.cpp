// Words of a code object to instructions, by the tables of encodings.
#include "isa.h"
#include <algorithm>
#include <cstdarg>
#include <cstdio>

std::string printed(const char *format, ...)
{
    char text[600];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    return text;
}

struct Words {
    uint32_t word[4] = {};
    int bytes = 0;
    uint32_t bits(int low, int width) const
    {
        const uint64_t pair = word[low / 32] | (uint64_t)(low / 32 < 3 ? word[low / 32 + 1] : 0) << 32;
        return pair >> low % 32 & ((1ull << width) - 1);
    }
};

static bool fits(const Encoding &e, const Words &words)
{
    if (words.bytes < e.size) return false;
    for (const Fixed &f : e.fixed)
        if ((words.word[f.word] >> f.low & f.mask) != f.value) return false;
    if (e.variant && words.bits(0, 9) != e.variant) return false;
    return e.operations[words.bits(e.op_low, e.op_width)] >= 0;
}

static const Encoding *named(const char *name)
{
    for (const Encoding &e : encodings)
        if (name && !strcmp(e.name, name)) return &e;
    return nullptr;
}

static void read_fields(Instruction &i, const Words &words)
{
    std::fill(i.field, i.field + FIELDS, -1);
    for (const FieldRow &f : i.encoding->fields) {
        int32_t value = words.bits(f.low, f.width);
        if (f.scale == 1) value += 256;
        else if (f.scale == 255) value = 256 + (value << 1 | (~words.bits(56, 1) & 1));
        else if (f.scale) value *= f.scale;
        i.field[f.name] = value;
    }
}

static const Field SOURCES[] = {F_src0, F_src1, F_src2, F_ssrc0, F_ssrc1, F_srcx0, F_srcy0};

// An instruction with a literal, or with DPP or SDWA, has another encoding, which a source tells.
static const Encoding *longer(const Instruction &i, const Words &words)
{
    const Family family = i.encoding->family;
    if (family == VOPD)
        for (int half = 0; half < 2; ++half) { // fma with a constant always has one
            const int16_t k = i.encoding->operations[half ? words.bits(17, 5) : words.bits(22, 4)];
            if (k >= 0 && (strstr(operations[k].name, "AAK") || strstr(operations[k].name, "AMK")))
                return named(i.encoding->longer[0]);
        }
    for (Field name : SOURCES) {
        const bool scalar = name == F_ssrc0 || name == F_ssrc1;
        if (i[name] == 255 && family != MFMA) return named(i.encoding->longer[0]);
        if (i[name] == 250 && !scalar && name == F_src0) return named(i.encoding->longer[1]);
        if (i[name] == 249 && !scalar && name == F_src0) return named(i.encoding->longer[2]);
    }
    return nullptr;
}

static bool ends_with(const std::string &s, const char *tail)
{
    const size_t n = strlen(tail);
    return s.size() >= n && s.compare(s.size() - n, n, tail) == 0;
}

static std::string find_handler(Instruction &i, uint32_t first)
{
    const Operation &o = *i.operation;
    if (o.kind == Vector) i.run = vector_step;
    else if (o.kind == Scalar) i.run = scalar_step;
    else i.run = handler_of(o.name);
    if (i.run) return "";
    return printed("the instruction %s (%08x) isn't known to the executor", o.name, first);
}

static std::string halves_of_dual(Instruction &i, const Words &words)
{
    i.second = std::make_unique<Instruction>();
    Instruction &x = i, &y = *i.second;
    y.encoding = i.encoding;
    y.object = i.object;
    y.address = i.address;
    y.behind = i.behind;
    y.literal = i.literal;
    std::fill(y.field, y.field + FIELDS, -1);
    const int16_t opx = i.encoding->operations[words.bits(22, 4)], opy = i.encoding->operations[words.bits(17, 5)];
    if (opx < 0 || opy < 0) return "a dual instruction with halves that aren't known";
    y.operation = &operations[opy];
    y.field[F_src0] = x[F_srcy0], y.field[F_vsrc1] = x[F_vsrcy1], y.field[F_vdst] = x[F_vdsty];
    x.operation = &operations[opx];
    x.field[F_src0] = x[F_srcx0], x.field[F_vsrc1] = x[F_vsrcx1], x.field[F_vdst] = x[F_vdstx];
    if (x.operation->kind != Vector || y.operation->kind != Vector)
        return printed("the dual instruction %s, %s isn't known", x.operation->name, y.operation->name);
    x.run = y.run = dual_step;
    return "";
}

Instruction *decode(CodeObject &object, uint64_t address, std::string &why)
{
    auto found = object.decoded.find(address);
    if (found != object.decoded.end()) return found->second.get();
    Words words;
    bool inside = false;
    for (const auto &[start, end] : object.code) {
        if (address < start || address >= end) continue;
        inside = true;
        words.bytes = (int)std::min<uint64_t>(16, end - address) & ~3;
        memcpy(words.word, object.base + address, words.bytes);
    }
    if (!inside || address % 4 || words.bytes < 4) {
        why = printed("there is no code at %#llx", (unsigned long long)address);
        return nullptr;
    }
    auto made = std::make_unique<Instruction>();
    Instruction &i = *made;
    i.encoding = nullptr;
    i.object = &object;
    i.address = address;
    for (size_t k = 0; k < tried && !i.encoding; ++k)
        if (fits(encodings[k], words)) i.encoding = &encodings[k];
    if (!i.encoding) {
        why = printed("no instruction of %s is encoded as %08x (at %#llx)", target_name, words.word[0],
                      (unsigned long long)address);
        return nullptr;
    }
    read_fields(i, words);
    if (const Encoding *other = longer(i, words)) {
        i.encoding = other;
        read_fields(i, words);
    }
    if (words.bytes < i.encoding->size) {
        why = printed("the code ends within an instruction at %#llx", (unsigned long long)address);
        return nullptr;
    }
    const std::string name = i.encoding->name;
    i.dpp = ends_with(name, "_DPP16");
    i.dpp8 = ends_with(name, "_DPP8");
    i.sdwa = name.find("_SDWA") != std::string::npos;
    if (ends_with(name, "_LIT")) i.literal = words.word[i.encoding->size / 4 - 1];
    i.behind = address + i.encoding->size;
    if (i.encoding->family == VOPD) why = halves_of_dual(i, words);
    else {
        i.operation = &operations[i.encoding->operations[words.bits(i.encoding->op_low, i.encoding->op_width)]];
        why = find_handler(i, words.word[0]);
    }
    if (!why.empty()) return nullptr;
    return (object.decoded[address] = std::move(made)).get();
}

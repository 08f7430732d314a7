// Lines of the text by address: DWARF 5's line tables, as -gline-tables-only makes them.
#include "isa.h"
#include <algorithm>

typedef std::pair<const uint8_t *, size_t> Section;

namespace {
struct LineReader {
    const uint8_t *at, *end;
    bool bad = false;
    uint64_t fixed(int bytes)
    {
        uint64_t x = 0;
        if (end - at < bytes) return bad = true, at = end, 0;
        memcpy(&x, at, bytes);
        at += bytes;
        return x;
    }
    uint64_t unsigned_number()
    {
        uint64_t x = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const uint64_t byte = fixed(1);
            x |= (byte & 127) << shift;
            if (!(byte & 128)) break;
        }
        return x;
    }
    int64_t signed_number()
    {
        uint64_t x = 0, byte = 128;
        int shift = 0;
        for (; byte & 128 && shift < 64; shift += 7) x |= ((byte = fixed(1)) & 127) << shift;
        return byte & 64 && shift < 64 ? (int64_t)(x | ~0ull << shift) : (int64_t)x;
    }
};

struct Header {
    uint8_t shortest, line_range, opcode_base, standard[16];
    int8_t line_base;
    std::vector<std::string> files;
};

std::string text_at(const Section &s, uint64_t offset)
{
    const char *from = (const char *)s.first + offset;
    return offset < s.second ? std::string(from, strnlen(from, s.second - offset)) : "";
}

// Rows of directories or files: forms first, then entries. Only paths are kept.
std::vector<std::string> read_entries(LineReader &r, const Section &strings)
{
    std::vector<std::pair<uint64_t, uint64_t>> forms;
    for (uint64_t k = r.fixed(1); k && !r.bad; --k) {
        const uint64_t content = r.unsigned_number(), form = r.unsigned_number();
        forms.push_back({content, form});
    }
    std::vector<std::string> found;
    for (uint64_t k = r.unsigned_number(); k && !r.bad; --k) {
        std::string path;
        for (const auto &[content, form] : forms) {
            std::string text;
            switch (form) {
            case 0x1f: text = text_at(strings, r.fixed(4)); break; // line_strp
            case 0x08: while (const char c = (char)r.fixed(1)) text += c; break;
            case 0x0b: r.fixed(1); break;
            case 0x05: r.fixed(2); break;
            case 0x0f: r.unsigned_number(); break;
            case 0x1e: r.fixed(8), r.fixed(8); break; // MD5
            default: r.bad = true;
            }
            if (content == 1) path = text;
        }
        found.push_back(path.substr(path.rfind('/') + 1));
    }
    return found;
}

struct Program {
    CodeObject &object;
    const Header &head;
    uint64_t address = 0, file = 1;
    int line = 1;
    void row()
    {
        object.lines.push_back({address, file < head.files.size() ? head.files[file] : "", line});
    }
    void extended(LineReader &r)
    {
        const uint64_t size = r.unsigned_number();
        const uint8_t *next = r.at + size;
        switch (size ? r.fixed(1) : 0) {
        case 1: // the end of a sequence
            object.lines.push_back({address, "", 0});
            address = 0, file = 1, line = 1;
            break;
        case 2: address = r.fixed((int)size - 1); break;
        }
        r.at = std::min(next, r.end);
    }
    void standard(LineReader &r, uint8_t code)
    {
        switch (code) {
        case 1: row(); break;
        case 2: address += r.unsigned_number() * head.shortest; break;
        case 3: line += (int)r.signed_number(); break;
        case 4: file = r.unsigned_number(); break;
        case 8: address += (255 - head.opcode_base) / head.line_range * head.shortest; break;
        case 9: address += r.fixed(2); break;
        default:
            for (int k = 0; k < head.standard[code]; ++k) r.unsigned_number();
        }
    }
    void run(LineReader r)
    {
        while (r.at < r.end && !r.bad) {
            const uint8_t code = (uint8_t)r.fixed(1);
            if (!code) extended(r);
            else if (code < head.opcode_base) standard(r, code);
            else {
                address += (code - head.opcode_base) / head.line_range * head.shortest;
                line += head.line_base + (code - head.opcode_base) % head.line_range;
                row();
            }
        }
    }
};
}

// Without line tables there are no lines: nothing depends on them.
void read_lines(CodeObject &o, const std::map<std::string, Section> &sections)
{
    const auto found = sections.find(".debug_line"), strings = sections.find(".debug_line_str");
    if (found == sections.end() || strings == sections.end()) return;
    LineReader all{found->second.first, found->second.first + found->second.second};
    while (all.at < all.end && !all.bad) {
        const uint64_t size = all.fixed(4);
        if (size > (uint64_t)(all.end - all.at)) return;
        LineReader r{all.at, all.at + size};
        all.at += size;
        if (r.fixed(2) != 5) continue;
        r.fixed(2); // sizes of addresses and of segments' names
        const uint64_t length = r.fixed(4);
        const uint8_t *program = r.at + length;
        Header head;
        head.shortest = (uint8_t)r.fixed(1);
        r.fixed(2); // operations of an instruction, whether rows are statements
        head.line_base = (int8_t)r.fixed(1);
        head.line_range = (uint8_t)r.fixed(1);
        head.opcode_base = (uint8_t)r.fixed(1);
        if (!head.line_range || head.opcode_base > 16) continue;
        for (int k = 1; k < head.opcode_base; ++k) head.standard[k] = (uint8_t)r.fixed(1);
        read_entries(r, strings->second);
        head.files = read_entries(r, strings->second);
        if (r.bad || program > r.end) continue;
        r.at = program;
        Program{o, head}.run(r);
    }
    const auto before = [](const Line &a, const Line &b) { return a.address < b.address; };
    std::stable_sort(o.lines.begin(), o.lines.end(), before);
}

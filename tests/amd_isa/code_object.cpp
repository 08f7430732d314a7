// ELF files of kernels: segments, symbols, relocations, notes. Bad ones are refused with words.
#include "isa.h"
#include "metadata.h"
#include <elf.h>

static const std::map<std::string, unsigned> MACHINES = {{"gfx942", 0x4c}, {"gfx1100", 0x41}};

struct File {
    const char *image;
    size_t size;
    template <typename T> const T *at(uint64_t offset, uint64_t count = 1) const
    {
        return offset <= size && count <= (size - offset) / sizeof(T) ? (const T *)(image + offset) : nullptr;
    }
};

static std::string load_segments(CodeObject &o, const File &file, const Elf64_Ehdr &head)
{
    const Elf64_Phdr *segments = file.at<Elf64_Phdr>(head.e_phoff, head.e_phnum);
    if (!segments) return "it is truncated: its program headers lie behind its end";
    uint64_t end = 0;
    for (int k = 0; k < head.e_phnum; ++k)
        if (segments[k].p_type == PT_LOAD && segments[k].p_vaddr + segments[k].p_memsz > end)
            end = segments[k].p_vaddr + segments[k].p_memsz;
    if (!end || end > 1u << 30) return printed("it has segments of %llu bytes", (unsigned long long)end);
    o.memory.assign(end + 4096, 0);
    o.base = (char *)(((uint64_t)o.memory.data() + 4095) & ~4095ull);
    for (int k = 0; k < head.e_phnum; ++k) {
        const Elf64_Phdr &s = segments[k];
        if (s.p_type != PT_LOAD) continue;
        const char *from = file.at<char>(s.p_offset, s.p_filesz);
        if (!from || s.p_filesz > s.p_memsz) return "it is truncated: a segment lies behind its end";
        memcpy(o.base + s.p_vaddr, from, s.p_filesz);
        if (s.p_flags & PF_X) o.code.push_back({s.p_vaddr, s.p_vaddr + s.p_filesz});
        if (s.p_flags & PF_W && (!o.writable_from || s.p_vaddr < o.writable_from)) o.writable_from = s.p_vaddr;
    }
    if (!o.writable_from) o.writable_from = end;
    return "";
}

static std::string read_symbols(CodeObject &o, const File &file, const Elf64_Shdr *sections, const Elf64_Shdr &table)
{
    const Elf64_Sym *symbols = file.at<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym));
    const Elf64_Shdr &names = sections[table.sh_link];
    const char *texts = file.at<char>(names.sh_offset, names.sh_size);
    if (!symbols || !texts || !names.sh_size || texts[names.sh_size - 1])
        return "it is truncated: its symbols lie behind its end";
    for (size_t k = 0; k < table.sh_size / sizeof(Elf64_Sym); ++k) {
        if (symbols[k].st_name >= names.sh_size || symbols[k].st_shndx == SHN_UNDEF) continue;
        o.symbols[texts + symbols[k].st_name] = symbols[k].st_value;
        o.sizes[texts + symbols[k].st_name] = symbols[k].st_size;
    }
    return "";
}

static std::string relocate(CodeObject &o, const File &file, const Elf64_Shdr &table)
{
    const Elf64_Rela *rows = file.at<Elf64_Rela>(table.sh_offset, table.sh_size / sizeof(Elf64_Rela));
    if (!rows) return "it is truncated: its relocations lie behind its end";
    for (size_t k = 0; k < table.sh_size / sizeof(Elf64_Rela); ++k) {
        const uint32_t kind = ELF64_R_TYPE(rows[k].r_info);
        if (kind != 13) return printed("it has a relocation of kind %u, which isn't known", kind); // RELATIVE64
        if (rows[k].r_offset + 8 > o.memory.size() - 4096) return "it has a relocation outside of its segments";
        const uint64_t value = (uint64_t)o.base + rows[k].r_addend;
        memcpy(o.base + rows[k].r_offset, &value, 8);
    }
    return "";
}

void read_lines(CodeObject &o, const std::map<std::string, std::pair<const uint8_t *, size_t>> &sections); // lines.cpp

std::string CodeObject::read(const char *image, size_t size)
{
    const File file{image, size};
    const Elf64_Ehdr *head = file.at<Elf64_Ehdr>(0);
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG)) return "it is no code object: it doesn't begin as an ELF file";
    if (head->e_machine != 224)
        return printed("it is an ELF file of machine %u, not of an AMD GPU (224)", head->e_machine);
    const unsigned machine = head->e_flags & 0xff;
    if (machine != MACHINES.at(target_name))
        return printed("it is for another target: its machine is %#x, and %s is %#x", machine, target_name,
                       MACHINES.at(target_name));
    const std::string bad = load_segments(*this, file, *head);
    if (!bad.empty()) return bad;
    const Elf64_Shdr *sections = file.at<Elf64_Shdr>(head->e_shoff, head->e_shnum);
    if (!sections || head->e_shstrndx >= head->e_shnum)
        return "it is truncated: its section headers lie behind its end";
    std::map<std::string, std::pair<const uint8_t *, size_t>> named;
    const Elf64_Shdr &strings = sections[head->e_shstrndx];
    const char *names = file.at<char>(strings.sh_offset, strings.sh_size);
    for (int k = 0; k < head->e_shnum; ++k) {
        const Elf64_Shdr &s = sections[k];
        std::string words;
        if (s.sh_type == SHT_SYMTAB || s.sh_type == SHT_DYNSYM)
            words = s.sh_link < head->e_shnum ? read_symbols(*this, file, sections, s) : "it has symbols without names";
        else if (s.sh_type == SHT_RELA) words = relocate(*this, file, s);
        if (!words.empty()) return words;
        const uint8_t *bytes = s.sh_type == SHT_NOBITS ? nullptr : file.at<uint8_t>(s.sh_offset, s.sh_size);
        if (bytes && names && s.sh_name < strings.sh_size) named[names + s.sh_name] = {bytes, s.sh_size};
    }
    const auto note = named.find(".note");
    bool known = false;
    if (note != named.end() && note->second.second > 20) { // sizes of name and text, kind, "AMDGPU\0" and padding
        const uint8_t *at = note->second.first;
        uint32_t name_size, text_size;
        memcpy(&name_size, at, 4);
        memcpy(&text_size, at + 4, 4);
        const size_t start = 12 + (name_size + 3) / 4 * 4;
        if (start + text_size <= note->second.second) known = read_metadata(at + start, text_size, metadata);
    }
    if (!known) return "it has no note that tells its kernels' arguments";
    read_lines(*this, named);
    return "";
}

const Line *CodeObject::line_of(uint64_t address) const
{
    const Line *found = nullptr;
    for (const Line &line : lines)
        if (line.address <= address) found = &line;
    return found && found->line ? found : nullptr;
}

// An executor of AMD code objects: what its parts know of each other. docs/design/amd_isa.md
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
#include "isa_tables.h"
#include "metadata.h"


// ---- code objects

struct Line { uint64_t address; std::string file; int line; };
struct Descriptor {
    uint32_t group_bytes, private_bytes, kernarg_bytes, rsrc1, rsrc2, rsrc3;
    uint64_t entry;
    uint16_t properties, preload;
};
struct Instruction;
struct CodeObject {
    std::vector<char> memory; // as loaded, from virtual address 0
    char *base = nullptr;
    std::map<std::string, uint64_t> symbols, sizes;
    std::vector<std::pair<uint64_t, uint64_t>> code; // address ranges that are executable
    std::vector<Line> lines; // of the text, by address
    std::map<uint64_t, std::unique_ptr<Instruction>> decoded;
    uint64_t writable_from = 0;
    std::vector<Metadata> metadata;
    std::string read(const char *image, size_t size); // words on what is wrong, or none
    const Line *line_of(uint64_t address) const;
};

// ---- decoded instructions

struct Wave;
typedef void (*Handler)(Wave &, Instruction &);
struct Instruction {
    Handler run;
    const Operation *operation;
    const Encoding *encoding;
    Instruction *next = nullptr;
    CodeObject *object;
    uint64_t address, behind; // its own, and of what follows
    uint32_t literal = 0;
    bool dpp = false, sdwa = false, dpp8 = false;
    Instruction *target = nullptr; // of a branch, once taken
    const struct Access *access = nullptr;
    int32_t field[FIELDS];
    std::unique_ptr<Instruction> second; // the other half of a VOPD
    int32_t operator[](Field name) const { return field[name]; }
};
Instruction *decode(CodeObject &object, uint64_t address, std::string &why);
Handler handler_of(const std::string &name); // of an operation that isn't in the tables; null: none

// ---- running

struct Range { uint64_t start, end; };
struct Launch { // of the emulated runtime
    uint32_t grid[3], block[3], shared;
    const char *arguments;
    size_t argument_bytes;
    bool backwards;
    void *context;
    bool (*live)(void *context, uint64_t address, uint64_t bytes, Range *found);
    const char *(*describe)(void *context, uint64_t address);
    char error[1024];
};
struct Kernel {
    CodeObject *object;
    std::string name;
    Descriptor descriptor;
    int wave_lanes, registers, accumulators, scalar_limit;
};

struct Group;
struct Machine;
enum class State : uint8_t { Ready, AtBarrier, Ended };
struct Wave {
    Machine *machine;
    Group *group;
    Instruction *at;
    int number, count; // of the block's waves; lanes of a wave
    State state = State::Ready;
    bool scc_known = true;
    uint32_t scc = 0;
    uint64_t launched; // lanes that there are
    bool jumped = false;
    uint32_t s[128];
    uint32_t s_known[128]; // the bits that have been written
    std::vector<uint32_t> registers; // rows of LANES
    std::vector<uint64_t> defined;   // lanes of each row that have been written
    std::vector<uint8_t> scratch;    // by lane
    uint32_t index_mode = 0;         // of s_set_gpr_idx_on

    uint64_t exec() const { return count == 64 ? s[126] | (uint64_t)s[127] << 32 : s[126]; }
    uint32_t *row(int number) { return &registers[(size_t)number * LANES]; }
    void set_mask(int number, uint64_t bits, uint64_t known = ~0ull);
    uint64_t mask_known(int number) const
    {
        return count == 64 ? s_known[number] | (uint64_t)s_known[number + 1] << 32 : s_known[number] | ~0ull << 32;
    }
    uint64_t mask(int number) const { return count == 64 ? s[number] | (uint64_t)s[number + 1] << 32 : s[number]; }
};
struct Accesses { uint64_t since, readers, writers, atomics; }; // of a byte, since a barrier: masks of waves
struct Group {
    uint32_t id[3];
    std::vector<uint8_t> shared, shared_defined;
    std::vector<std::unique_ptr<Wave>> waves;
    uint64_t barriers = 0;
    std::unordered_map<uint64_t, Accesses> accesses;
};
struct Machine {
    const Kernel *kernel;
    Launch *launch;
    std::vector<char> kernarg;
    std::vector<Range> ranges; // live memory that was touched before
    uint64_t clock = 0;
    bool check_defined = true, races = false, trace = false; // trace: tells where undefined values are made
    alignas(64) char packet[64] = {}; // of the dispatch
};

struct Fault { std::string words; }; // thrown where a kernel can't go on
[[noreturn]] void fault(const Wave &wave, const std::string &words);
bool run(const Kernel &kernel, Launch &launch); // false: launch.error says why

// memory.cpp
char *global(Wave &wave, uint64_t address, uint32_t bytes, bool writes);
extern const uint64_t SHARED_APERTURE, PRIVATE_APERTURE;

// races.cpp
void note_access(Wave &wave, uint64_t address, uint32_t bytes, bool shared, bool writes, bool atomic);

// registers.cpp: operands
enum { VCC = 106, EXEC = 126 }; // scalar registers, of which a wave of 64 has two each
static inline int operand(const Instruction &i, int number) // the register or constant; -1: there is no such source
{
    static const Field NAMES[3][2] = {{F_vsrc0, F_src0}, {F_vsrc1, F_src1}, {F_src2, F_src2}};
    const int first = i[NAMES[number][0]];
    return first >= 0 ? first : i[NAMES[number][1]];
}
uint64_t scalar_source(Wave &wave, const Instruction &i, int number, int words);
void set_scalar(Wave &wave, int number, int words, uint64_t value, uint64_t known = ~0ull);
uint64_t scalar_known(const Wave &wave, int number, int words);
void check_scalar(Wave &wave, int number, int words);
const uint32_t *vector_source(Wave &wave, const Instruction &i, int number, int word, uint32_t *room,
                              uint64_t *defined, Letter letter = Bits, int words = 1);
void write_row(Wave &wave, int number, const uint32_t *values, uint64_t lanes, uint64_t defined);
int first_lane(const Wave &wave);
std::string printed(const char *format, ...);
void vector_step(Wave &wave, Instruction &i);
void scalar_step(Wave &wave, Instruction &i);
void dual_step(Wave &wave, Instruction &i);
void jump(Wave &wave, Instruction &i, uint64_t address);
Instruction *find(Wave &wave, uint64_t address);

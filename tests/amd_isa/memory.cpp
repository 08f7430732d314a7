// Memory: global and flat accesses, scratch, LDS, scalar loads, atomics. Each access is checked against live memory.
#include "isa.h"
#include "isa_math.h"
#include <algorithm>
#include <map>

const uint64_t SHARED_APERTURE = 0x1000000000000, PRIVATE_APERTURE = 0x2000000000000;

enum Do : uint8_t {
    Load, Store, Swap, CompareSwap, Add, Sub, ReverseSub, SignedMin, UnsignedMin, SignedMax, UnsignedMax, And, Or, Xor,
    Increment, Decrement, AddFloat, MinFloat, MaxFloat, AddHalves, AddBfloats,
};
struct Access { // what a name says
    Do does = Load;
    int bytes = 4;                       // of an element
    bool extend = false, returns = false; // an atomic of LDS that returns
    int half = 0;                        // 1: the low half of the register, 2: the high half
    int strides = 0;                     // of a pair of elements
};

char *global(Wave &wave, uint64_t address, uint32_t bytes, bool writes)
{
    Machine &m = *wave.machine;
    for (const Range &range : m.ranges)
        if (address >= range.start && address + bytes <= range.end) return (char *)address;
    const uint64_t base = (uint64_t)m.kernel->object->base, size = m.kernel->object->memory.size();
    if (address >= base && address + bytes <= base + size) {
        if (writes && address - base < m.kernel->object->writable_from)
            fault(wave, printed("writes to constants or code, at %#llx of the code object",
                                (unsigned long long)(address - base)));
        return (char *)address;
    }
    const uint64_t kernarg = (uint64_t)m.kernarg.data();
    if (!writes && address >= kernarg && address + bytes <= kernarg + m.kernarg.size())
        return (char *)address;
    if (!writes && address >= (uint64_t)m.packet && address + bytes <= (uint64_t)m.packet + sizeof m.packet)
        return (char *)address;
    Range found;
    if (m.launch->live && m.launch->live(m.launch->context, address, bytes, &found)) {
        m.ranges.insert(m.ranges.begin(), found);
        if (m.ranges.size() > 16) m.ranges.pop_back();
        return (char *)address;
    }
    const char *words = m.launch->describe ? m.launch->describe(m.launch->context, address) : "no live memory";
    fault(wave, printed("touched %s (%u bytes are %s)", words, bytes, writes ? "written" : "read"));
}

// Where a lane's access of any kind goes.
static char *scratch(Wave &wave, int lane, int64_t offset, uint32_t bytes)
{
    const uint32_t size = wave.scratch.size() / LANES;
    if (offset < 0 || offset + bytes > size)
        fault(wave, printed("touched scratch at %lld, of which each lane has %u bytes", (long long)offset, size));
    return (char *)&wave.scratch[(size_t)lane * size + offset];
}
static char *shared(Wave &wave, int64_t offset, uint32_t bytes)
{
    const size_t size = wave.group->shared.size();
    if (offset < 0 || (size_t)offset + bytes > size)
        fault(wave, printed("touched LDS at %lld, of which the block has %zu bytes", (long long)offset, size));
    return (char *)&wave.group->shared[offset];
}
static const unsigned ALL_WORDS = ~0u;
// The words that have been written, as bits: of a vector a part may exist, and of a word some of its bytes. Compilers
// load bytes that are neighbours as a word, and take only those that exist.
static unsigned shared_known(Wave &wave, int64_t offset, uint32_t bytes)
{
    unsigned known = 0;
    for (uint32_t k = 0; k < bytes; ++k)
        if (wave.group->shared_defined[offset + k]) known |= 1u << k / 4;
    return known | ~((1u << (bytes + 3) / 4) - 1);
}

static char *place(Wave &wave, Family family, int lane, uint64_t address, uint32_t bytes, bool writes)
{
    if (family == DS) return shared(wave, (int64_t)address, bytes);
    if (family == SCRATCH) return scratch(wave, lane, (int64_t)address, bytes);
    if (family == FLAT && address >> 32 == SHARED_APERTURE >> 32) return shared(wave, address & 0xffffffff, bytes);
    if (family == FLAT && address >> 32 == PRIVATE_APERTURE >> 32)
        return scratch(wave, lane, address & 0xffffffff, bytes);
    return global(wave, address, bytes, writes);
}

static bool is_shared(Family family, uint64_t address)
{
    return family == DS || (family == FLAT && address >> 32 == SHARED_APERTURE >> 32);
}

// ---- what names say

static bool part(const std::string &name, const char *word) { return name.find(word) != std::string::npos; }

static int element_bytes(const std::string &n)
{
    static const std::pair<const char *, int> SIZES[] = {
        {"X16", 64}, {"X8", 32}, {"DWORDX4", 16}, {"DWORDX3", 12}, {"DWORDX2", 8}, {"B512", 64}, {"B256", 32},
        {"B128", 16}, {"B96", 12}, {"_X2", 8}, {"64", 8}, {"BYTE", 1}, {"U8", 1}, {"I8", 1}, {"B8", 1}, {"SHORT", 2},
        {"_U16", 2}, {"_I16", 2}, {"_B16", 2},
    };
    if (part(n, "ST64") && !part(n, "_B64")) return 4;
    if (part(n, "STRIDE64") && !part(n, "_B64")) return 4;
    if (part(n, "D16") && !part(n, "8") && !part(n, "BYTE")) return 2;
    for (const auto &[word, bytes] : SIZES)
        if (part(n, word)) return bytes;
    return 4;
}

static bool atomic_of(const std::string &n, Access &a)
{
    static const std::pair<const char *, Do> DOES[] = {
        {"PK_ADD_BF16", AddBfloats}, {"PK_ADD_RTN_BF16", AddBfloats}, {"PK_ADD", AddHalves}, {"CMPSWAP", CompareSwap},
        {"CMPST", CompareSwap}, {"STOREXCHG", Swap}, {"WRXCHG", Swap}, {"SWAP", Swap}, {"RSUB", ReverseSub},
        {"SUB", Sub},
        {"ADD", Add}, {"SMIN", SignedMin}, {"UMIN", UnsignedMin}, {"SMAX", SignedMax}, {"UMAX", UnsignedMax},
        {"MIN", SignedMin}, {"MAX", SignedMax}, {"AND", And}, {"XOR", Xor}, {"OR", Or}, {"INC", Increment},
        {"DEC", Decrement},
    };
    for (const auto &[word, does] : DOES)
        if (part(n, word)) {
            a.does = does;
            const bool floats = part(n, "_F32") || part(n, "_F64"), is_unsigned = part(n, "_U32") || part(n, "_U64");
            if (floats && a.does == Add) a.does = AddFloat;
            if (floats && a.does == SignedMin) a.does = MinFloat;
            if (floats && a.does == SignedMax) a.does = MaxFloat;
            if (is_unsigned && a.does == SignedMin) a.does = UnsignedMin;
            if (is_unsigned && a.does == SignedMax) a.does = UnsignedMax;
            if (a.does >= AddHalves) a.bytes = 4;
            return true;
        }
    return false;
}

static const Access *access_of(const std::string &name)
{
    static std::map<std::string, Access> known;
    const auto found = known.find(name);
    if (found != known.end()) return &found->second;
    Access a;
    a.bytes = element_bytes(name);
    a.extend = part(name, "SBYTE") || part(name, "SSHORT") || part(name, "_I8") || part(name, "_I16");
    const bool d16 = part(name, "D16");
    const bool stores = part(name, "STORE_") || part(name, "DS_WRITE");
    if (d16) a.half = part(name, "D16_HI") ? 2 : 1;
    if (part(name, "ATOMIC")) {
        if (!atomic_of(name, a)) return nullptr;
    } else if (stores && !part(name, "XCHG")) a.does = Store;
    else if (part(name, "LOAD") || part(name, "DS_READ")) a.does = Load;
    else if (!atomic_of(name, a)) return nullptr;
    a.returns = part(name, "_RTN");
    if (part(name, "READ2") || part(name, "WRITE2") || part(name, "2ADDR"))
        a.strides = part(name, "ST64") || part(name, "STRIDE64") ? 64 : 1;
    return &(known[name] = a);
}

// ---- registers of data

static int data_row(Wave &wave, const Instruction &i, int number)
{
    return (i[F_acc] > 0 ? wave.machine->kernel->registers : 0) + number - 256;
}

static void check_known(Wave &wave, int row, int lane, const char *what)
{
    if (wave.machine->check_defined && !(wave.defined[row] >> lane & 1))
        fault(wave, printed("%s v%d of lane %d, which nothing has written", what, row, lane));
}

static void to_register(Wave &wave, int row, int lane, const Access &a, const char *from, unsigned known)
{
    for (int k = 0; k < a.bytes; k += 4) {
        uint32_t value = 0;
        memcpy(&value, from + k, std::min(4, a.bytes - k));
        if (a.extend) value = a.bytes == 1 ? (int8_t)value : (int16_t)value;
        uint32_t &to = wave.row(row + k / 4)[lane];
        if (a.half == 1) value = (to & 0xffff0000u) | (value & 0xffff);
        if (a.half == 2) value = (to & 0xffff) | value << 16;
        to = value;
        uint64_t &defined = wave.defined[row + k / 4];
        defined = known >> k / 4 & 1 ? defined | 1ull << lane : defined & ~(1ull << lane);
    }
}

static void from_register(Wave &wave, int row, int lane, const Access &a, char *to)
{
    for (int k = 0; k < a.bytes; k += 4) {
        uint32_t value = wave.row(row + k / 4)[lane];
        if (a.half == 2) value >>= 16;
        memcpy(to + k, &value, std::min(4, a.bytes - k));
    }
}

// ---- atomics

template <typename T> static T integer_result(Do does, T old, T x)
{
    typedef typename std::make_signed<T>::type S;
    switch (does) {
    case Swap: return x;
    case Add: return old + x;
    case Sub: return old - x;
    case ReverseSub: return x - old;
    case SignedMin: return (S)x < (S)old ? x : old;
    case UnsignedMin: return x < old ? x : old;
    case SignedMax: return (S)x > (S)old ? x : old;
    case UnsignedMax: return x > old ? x : old;
    case And: return old & x;
    case Or: return old | x;
    case Xor: return old ^ x;
    case Increment: return old >= x ? 0 : old + 1;
    case Decrement: return old == 0 || old > x ? x : old - 1;
    default: return old;
    }
}

static uint32_t halves_result(Do does, uint32_t old, uint32_t x)
{
    uint32_t result = 0;
    for (int k = 0; k < 32; k += 16) {
        const uint32_t a = old >> k & 0xffff, b = x >> k & 0xffff;
        const uint32_t sum = does == AddHalves ? isa_h_bits(isa_h_from(a) + isa_h_from(b))
                                               : isa_b_bits(isa_b_from(a) + isa_b_from(b));
        result |= sum << k;
    }
    return result;
}

template <typename F> static F float_result(Do does, F old, F x)
{
    return does == AddFloat ? old + x : does == MinFloat ? isa_least(old, x) : isa_most(old, x);
}

static void atomic(Do does, int bytes, char *at, uint64_t x, uint64_t compared, uint64_t *old)
{
    *old = 0;
    memcpy(old, at, bytes);
    uint64_t result;
    if (does == CompareSwap) result = *old == compared ? x : *old;
    else if (does >= AddHalves) result = halves_result(does, (uint32_t)*old, (uint32_t)x);
    else if (does >= AddFloat && bytes == 4)
        result = isa_f_bits(float_result(does, isa_f_from((uint32_t)*old), isa_f_from((uint32_t)x)));
    else if (does >= AddFloat) result = isa_d_bits(float_result(does, isa_d_from(*old), isa_d_from(x)));
    else if (bytes == 4) result = integer_result<uint32_t>(does, (uint32_t)*old, (uint32_t)x);
    else result = integer_result<uint64_t>(does, *old, x);
    memcpy(at, &result, bytes);
}

static uint64_t value_of(Wave &wave, int row, int lane, int bytes)
{
    return wave.row(row)[lane] | (bytes > 4 ? (uint64_t)wave.row(row + 1)[lane] << 32 : 0);
}

static void atomic_lane(Wave &wave, Instruction &i, const Access &a, int lane, uint64_t address, int data, int compare,
                        int target)
{
    const Family family = i.encoding->family;
    if (address % a.bytes) fault(wave, printed("%s at %#llx, which isn't aligned to %d bytes", i.operation->name,
                                               (unsigned long long)address, a.bytes));
    char *at = place(wave, family, lane, address, a.bytes, true);
    unsigned known = ALL_WORDS;
    if (wave.machine->races)
        note_access(wave, is_shared(family, address) ? address & 0xffffffff : address, a.bytes,
                    is_shared(family, address), true, true);
    if (is_shared(family, address)) {
        known = shared_known(wave, address & 0xffffffff, a.bytes);
        if (known != ALL_WORDS && wave.machine->check_defined)
            fault(wave, printed("%s of LDS at %llu, which nothing has written", i.operation->name,
                                (unsigned long long)(address & 0xffffffff)));
    }
    uint64_t old;
    const uint64_t compared = compare >= 0 ? value_of(wave, compare, lane, a.bytes) : 0;
    atomic(a.does, a.bytes, at, value_of(wave, data, lane, a.bytes), compared, &old);
    if (target >= 0) to_register(wave, target, lane, a, (const char *)&old, known);
}

// Atomic loads and stores are plain ones past the caches.
static bool is_coherent(const Instruction &i)
{
    return i.encoding->family != DS && (i[F_sc0] > 0 || i[F_sc1] > 0 || i[F_glc] > 0);
}

static void one_access(Wave &wave, Instruction &i, const Access &a, int lane, uint64_t address, int data, int target)
{
    const Family family = i.encoding->family;
    char *at = place(wave, family, lane, address, a.bytes, a.does == Store);
    const bool of_shared = is_shared(family, address);
    const uint64_t offset = address & 0xffffffff;
    if (wave.machine->races && family != SCRATCH && (family != FLAT || address >> 32 != PRIVATE_APERTURE >> 32))
        note_access(wave, of_shared ? offset : address, a.bytes, of_shared, a.does == Store, is_coherent(i));
    if (a.does == Load) {
        to_register(wave, target, lane, a, at, of_shared ? shared_known(wave, offset, a.bytes) : ALL_WORDS);
        return;
    }
    if (!of_shared && family != SCRATCH)
        for (int k = 0; k < a.bytes; k += 4) check_known(wave, data + k / 4, lane, "stored is");
    from_register(wave, data, lane, a, at);
    if (of_shared) {
        for (int k = 0; k < a.bytes; k += 4)
            memset(&wave.group->shared_defined[offset + k], wave.defined[data + k / 4] >> lane & 1,
                   std::min(4, a.bytes - k));
    }
}

// ---- instructions

static int64_t signed_offset(const Instruction &i)
{
    const int32_t offset = i[F_offset];
    return i.encoding->family == FLAT ? offset : (int32_t)((uint32_t)offset << 19) >> 19;
}

static uint64_t flat_address(Wave &wave, Instruction &i, int lane)
{
    const int vector = i[F_addr] - 256, base = i[F_saddr];
    const bool no_base = i.encoding->family == FLAT || base == 124 + (is_cdna ? 3 : 0) || base == 0x7f || base == 124;
    uint64_t address = signed_offset(i);
    if (i.encoding->family == SCRATCH) {
        if (i[F_sve] > 0) check_known(wave, vector, lane, "an address is"), address += wave.row(vector)[lane];
        if (!no_base) address += wave.s[base];
        return (uint64_t)(int64_t)(int32_t)address;
    }
    check_known(wave, vector, lane, "an address is");
    if (!no_base) return address + scalar_source(wave, i, base, 2) + wave.row(vector)[lane];
    check_known(wave, vector + 1, lane, "an address is");
    return address + value_of(wave, vector, lane, 8);
}

static void flat(Wave &wave, Instruction &i)
{
    const Access &a = *(i.access ? i.access : (i.access = access_of(i.operation->name)));
    if (i.encoding->family == GLOBAL && i[F_saddr] < 106) check_scalar(wave, i[F_saddr], 2);
    const bool returns = is_cdna ? i[F_sc0] > 0 : i[F_glc] > 0;
    const int data = data_row(wave, i, i[F_data]), target = data_row(wave, i, i[F_vdst]);
    const uint64_t exec = wave.exec();
    uint64_t addresses[LANES];
    for (uint64_t left = exec; left; left &= left - 1) {
        const int lane = __builtin_ctzll(left);
        addresses[lane] = flat_address(wave, i, lane);
    }
    for (uint64_t left = exec; left; left &= left - 1) {
        const int lane = __builtin_ctzll(left);
        if (a.does <= Store) one_access(wave, i, a, lane, addresses[lane], data, target);
        else atomic_lane(wave, i, a, lane, addresses[lane], data, a.does == CompareSwap ? data + a.bytes / 4 : -1,
                         returns ? target : -1);
    }
}

static void ds(Wave &wave, Instruction &i)
{
    const Access &a = *(i.access ? i.access : (i.access = access_of(i.operation->name)));
    const int row = i[F_addr] - 256;
    const int data0 = data_row(wave, i, i[F_data0]), data1 = data_row(wave, i, i[F_data1]);
    const int target = data_row(wave, i, i[F_vdst]), second = a.bytes / 4;
    const int32_t offset = a.strides ? i[F_offset0] * a.strides * a.bytes : i[F_offset0] | i[F_offset1] << 8;
    uint32_t addresses[LANES];
    memcpy(addresses, wave.row(row), sizeof addresses);
    for (uint64_t left = wave.exec(); left; left &= left - 1) {
        const int lane = __builtin_ctzll(left);
        check_known(wave, row, lane, "an address is");
        const uint32_t address = addresses[lane] + offset;
        // CDNA takes what is compared first, RDNA 3 what is stored
        const int new_row = a.does == CompareSwap && is_cdna ? data1 : data0;
        if (a.does > Store) {
            atomic_lane(wave, i, a, lane, address, new_row, a.does == CompareSwap ? data0 + data1 - new_row : -1,
                        a.returns ? target : -1);
            continue;
        }
        one_access(wave, i, a, lane, address, data0, target);
        if (a.strides)
            one_access(wave, i, a, lane, addresses[lane] + i[F_offset1] * a.strides * a.bytes, data1, target + second);
    }
}

static void smem(Wave &wave, Instruction &i)
{
    const Access &a = *(i.access ? i.access : (i.access = access_of(i.operation->name)));
    check_scalar(wave, i[F_sbase], 2);
    uint64_t address = scalar_source(wave, i, i[F_sbase], 2);
    const bool buffer = part(i.operation->name, "BUFFER");
    if (buffer) address &= 0xffffffffffff;
    const int64_t offset = (int32_t)((uint32_t)i[F_offset] << 11) >> 11;
    if (is_cdna) {
        if (i[F_imm] > 0) address += offset;
        else address += scalar_source(wave, i, i[F_soffset_en] > 0 ? i[F_soffset] : (int)(i[F_offset] & 127), 1);
        if (i[F_imm] > 0 && i[F_soffset_en] > 0) address += scalar_source(wave, i, i[F_soffset], 1);
    } else address += offset + scalar_source(wave, i, i[F_soffset], 1);
    address &= ~3ull;
    const char *at = global(wave, address, a.bytes, false);
    for (int k = 0; k < a.bytes / 4; ++k) {
        uint32_t word;
        memcpy(&word, at + 4 * k, 4);
        set_scalar(wave, i[F_sdata] + k, 1, word);
    }
}

static void s_memtime(Wave &wave, Instruction &i) { set_scalar(wave, i[F_sdata], 2, wave.machine->clock); }

static void mubuf(Wave &wave, Instruction &i)
{
    const Access &a = *(i.access ? i.access : (i.access = access_of(i.operation->name)));
    const uint64_t base = (wave.s[i[F_srsrc]] | (uint64_t)wave.s[i[F_srsrc] + 1] << 32) & 0xffffffffffff;
    const uint32_t stride = wave.s[i[F_srsrc] + 1] >> 16 & 0x3fff, records = wave.s[i[F_srsrc] + 2];
    const uint32_t scalar = (uint32_t)scalar_source(wave, i, i[F_soffset], 1);
    const int data = data_row(wave, i, i[F_vdata]), vector = i[F_vaddr] - 256;
    for (uint64_t left = wave.exec(); left; left &= left - 1) {
        const int lane = __builtin_ctzll(left);
        uint64_t offset = i[F_offset];
        int next = vector;
        uint64_t index = 0;
        if (i[F_idxen] > 0) index = wave.row(next++)[lane];
        if (i[F_offen] > 0) offset += wave.row(next)[lane];
        const bool outside = stride ? index >= records : offset + a.bytes > records;
        static const char zeros[16] = {};
        if (outside && a.does == Load) to_register(wave, data, lane, a, zeros, ALL_WORDS);
        if (outside) continue; // as the descriptor asks
        const uint64_t address = base + scalar + offset + index * stride;
        if (a.does <= Store) one_access(wave, i, a, lane, address, data, data);
        else atomic_lane(wave, i, a, lane, address, data, a.does == CompareSwap ? data + a.bytes / 4 : -1,
                         (is_cdna ? i[F_sc0] : i[F_glc]) > 0 ? data : -1);
    }
}

Handler memory_handler(const std::string &name)
{
    const auto starts = [&](const char *s) { return name.compare(0, strlen(s), s) == 0; };
    static const char *const OTHERS[] = {"PERMUTE", "SWIZZLE", "APPEND", "CONSUME", "GWS", "ORDERED", "ADDTID", "BVH",
                                         "GS_REG", "CONDXCHG", "LDS_", "FORMAT", "TR_B", "READ_B64_TR", "_TR_"};
    if (name == "S_MEMTIME" || name == "S_MEMREALTIME") return s_memtime;
    for (const char *word : OTHERS)
        if (part(name, word)) return nullptr;
    if (!access_of(name)) return nullptr;
    if (starts("GLOBAL_") || starts("FLAT_") || starts("SCRATCH_")) return flat;
    if (starts("DS_")) return ds;
    if (starts("BUFFER_")) return mubuf;
    if (starts("S_LOAD_") || starts("S_BUFFER_LOAD_")) return smem;
    return nullptr;
}

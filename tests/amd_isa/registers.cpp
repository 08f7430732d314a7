// Operands of instructions: registers, inline constants, literals, and what is known to have been written.
#include "isa.h"
#include "isa_math.h"
#include <cstdio>

void Wave::set_mask(int number, uint64_t bits, uint64_t known)
{
    set_scalar(*this, number, count == 64 ? 2 : 1, bits, known);
}

static int null_register() { return is_cdna ? -1 : 124; }

static void check_number(const Wave &wave, int number, int words)
{
    if (number + words > 128) fault(wave, printed("scalar register %d is not one", number));
}

void set_scalar(Wave &wave, int number, int words, uint64_t value, uint64_t known)
{
    if (number == null_register()) return;
    check_number(wave, number, words);
    for (int k = 0; k < words; ++k) {
        wave.s[number + k] = (uint32_t)(value >> 32 * k);
        wave.s_known[number + k] = (uint32_t)(known >> 32 * k);
    }
}

// The bits of a scalar source that are known: all, of what is no register that programs write.
uint64_t scalar_known(const Wave &wave, int number, int words)
{
    if (number < 0 || number >= 108) return ~0ull;
    return words > 1 ? wave.s_known[number] | (uint64_t)wave.s_known[number + 1] << 32
                     : wave.s_known[number] | ~0ull << 32;
}

void check_scalar(Wave &wave, int number, int words)
{
    if (wave.machine->check_defined && ~scalar_known(wave, number, words))
        fault(wave, printed("s%d is used, which nothing has written", number));
}

static const float CONSTANTS[] = {0.5f, -0.5f, 1, -1, 2, -2, 4, -4, 0.15915494f};

// The bits of an inline constant of a float, as an operand of a type has them.
static uint64_t float_constant(int number, Letter letter, int words)
{
    const float x = CONSTANTS[number - 240];
    if (letter == Float16 || letter == Packed16 || letter == Half) return number == 248 ? 0x3118 : isa_h_bits(x);
    if (words == 2 && letter != Packed32) return number == 248 ? 0x3fc45f306dc9c882 : isa_d_bits(x);
    return number == 248 ? 0x3e22f983 : isa_f_bits(x);
}

static uint64_t literal(const Instruction &i, Letter letter, int words)
{
    if (words < 2 || letter == Packed32) return i.literal;
    if (letter == Float64) return (uint64_t)i.literal << 32;
    if (strstr(i.operation->name, "I64")) return (uint64_t)(int64_t)(int32_t)i.literal;
    return i.literal;
}

static uint64_t constant(Wave &wave, const Instruction &i, int number, Letter letter, int words)
{
    if (number <= 192) return number - 128;
    if (number <= 208) return (uint64_t)(int64_t)(192 - number);
    if (number >= 240 && number <= 248) return float_constant(number, letter, words);
    switch (number) {
    case 235: return SHARED_APERTURE;
    case 236: return SHARED_APERTURE | 0xffffffff;
    case 237: return PRIVATE_APERTURE;
    case 238: return PRIVATE_APERTURE | 0xffffffff;
    case 251: return wave.mask(VCC) == 0;
    case 252: return wave.exec() == 0;
    case 253: return wave.scc;
    case 255: return literal(i, letter, words);
    }
    fault(wave, printed("source %d of %s isn't known", number, i.operation->name));
}

static uint64_t scalar_value(Wave &wave, const Instruction &i, int number, int words, Letter letter)
{
    if (number == null_register()) return 0;
    if (number >= 128) return constant(wave, i, number, letter, words);
    check_number(wave, number, words);
    return wave.s[number] | (words > 1 ? (uint64_t)wave.s[number + 1] << 32 : 0);
}

uint64_t scalar_source(Wave &wave, const Instruction &i, int number, int words)
{
    return scalar_value(wave, i, number, words, Bits);
}

const uint32_t *vector_source(Wave &wave, const Instruction &i, int number, int word, uint32_t *room,
                              uint64_t *defined, Letter letter, int words)
{
    if (number >= 256) {
        const int row = number - 256 + word;
        if (row >= wave.machine->kernel->registers) fault(wave, printed("v%d is beyond the kernel's registers", row));
        *defined &= wave.defined[row];
        return wave.row(row);
    }
    if (number < 128 && ~scalar_known(wave, number + word, 1)) *defined = 0;
    const uint64_t value = scalar_value(wave, i, number, words, letter);
    const uint32_t part = word ? (uint32_t)(value >> 32) : (uint32_t)value;
    for (int lane = 0; lane < LANES; ++lane) room[lane] = part;
    return room;
}

void write_row(Wave &wave, int number, const uint32_t *values, uint64_t lanes, uint64_t defined)
{
    if (number >= wave.machine->kernel->registers) fault(wave, printed("v%d is beyond the kernel's registers", number));
    if (wave.machine->trace && ~defined & lanes)
        fprintf(stderr, "undefined: v%d of lanes %llx, at %#llx\n", number, (unsigned long long)(~defined & lanes),
                (unsigned long long)wave.at->address);
    uint32_t *row = wave.row(number);
    const uint64_t all = wave.count == 64 ? ~0ull : 0xffffffffull;
    if (lanes == all) memcpy(row, values, wave.count * 4);
    else
        for (int lane = 0; lane < wave.count; ++lane)
            if (lanes >> lane & 1) row[lane] = values[lane];
    wave.defined[number] = (wave.defined[number] & ~lanes) | (defined & lanes);
}

int first_lane(const Wave &wave)
{
    const uint64_t exec = wave.exec();
    return exec ? __builtin_ctzll(exec) : 0;
}

// Instructions that move values between lanes, or between lanes and scalars.
#include "isa.h"

static int vector_row(Wave &wave, int number)
{
    if (number < 256) fault(wave, "a scalar stands where lanes are read");
    return number - 256;
}
static uint32_t scalar_operand(Wave &wave, Instruction &i, int k)
{
    const int number = operand(i, k);
    if (number < 108) check_scalar(wave, number, 1);
    return (uint32_t)scalar_source(wave, i, number, 1);
}
static void to_scalar(Wave &wave, Instruction &i, int lane)
{
    const int number = operand(i, 0), target = i[F_vdst] >= 0 ? i[F_vdst] : i[F_sdst];
    const int to = target >= 256 ? target - 256 : target;
    if (number < 256) {
        set_scalar(wave, to, 1, scalar_source(wave, i, number, 1));
        return;
    }
    set_scalar(wave, to, 1, wave.row(number - 256)[lane], wave.defined[number - 256] >> lane & 1 ? ~0ull : 0);
}
static void v_readfirstlane(Wave &wave, Instruction &i) { to_scalar(wave, i, first_lane(wave)); }
static void v_readlane(Wave &wave, Instruction &i)
{
    to_scalar(wave, i, scalar_operand(wave, i, 1) & (wave.count - 1));
}
static void v_writelane(Wave &wave, Instruction &i)
{
    const int lane = scalar_operand(wave, i, 1) & (wave.count - 1);
    uint32_t values[LANES] = {};
    values[lane] = (uint32_t)scalar_source(wave, i, operand(i, 0), 1);
    write_row(wave, i[F_vdst] - 256, values, 1ull << lane, ~0ull);
}

// Each lane takes what `from(lane)` had; negative: 0.
template <typename F>
static void gather(Wave &wave, int target, int source, F from, uint64_t lanes, bool inactive = false)
{
    uint32_t values[LANES];
    uint64_t defined = 0;
    const uint64_t exec = wave.exec();
    for (int lane = 0; lane < wave.count; ++lane) {
        const int other = from(lane);
        const bool readable = other >= 0 && (inactive || (exec >> other & 1));
        values[lane] = readable ? wave.row(source)[other] : 0;
        defined |= (readable ? wave.defined[source] >> other & 1 : 1) << lane;
    }
    write_row(wave, target, values, lanes, defined);
}

static void check_selection(Wave &wave, int row)
{
    if (wave.machine->check_defined && (wave.exec() & ~wave.defined[row]))
        fault(wave, printed("the lanes of v%d are taken, which not all lanes have written", row));
}
static void ds_bpermute(Wave &wave, Instruction &i)
{
    const int address = vector_row(wave, i[F_addr]), offset = i[F_offset0] | i[F_offset1] << 8;
    check_selection(wave, address);
    const uint32_t *row = wave.row(address);
    const int mask = wave.count - 1;
    const auto from = [&](int lane) { return (int)((row[lane] + offset) / 4) & mask; };
    gather(wave, i[F_vdst] - 256, i[F_data0] - 256, from, wave.exec());
}
static void ds_permute(Wave &wave, Instruction &i)
{
    const int address = vector_row(wave, i[F_addr]), source = i[F_data0] - 256;
    check_selection(wave, address);
    uint32_t values[LANES] = {};
    uint64_t defined = ~0ull;
    for (int lane = 0; lane < wave.count; ++lane) {
        if (!(wave.exec() >> lane & 1)) continue;
        const int to = ((wave.row(address)[lane] + (i[F_offset0] | i[F_offset1] << 8)) / 4) & (wave.count - 1);
        values[to] = wave.row(source)[lane];
        if (!(wave.defined[source] >> lane & 1)) defined &= ~(1ull << to);
    }
    write_row(wave, i[F_vdst] - 256, values, wave.exec(), defined);
}
static void ds_swizzle(Wave &wave, Instruction &i)
{
    const int pattern = i[F_offset0] | i[F_offset1] << 8;
    if (pattern >= 0xe000) fault(wave, "the swizzle for Fourier transforms isn't known to the executor");
    const auto from = [&](int lane) {
        if (pattern & 0x8000 && pattern < 0xc000) return (lane & ~3) | (pattern >> 2 * (lane & 3) & 3);
        if (pattern >= 0xc000) { // a rotation of 32 lanes
            const int mask = pattern & 31, by = pattern >> 5 & 31, right = pattern >> 10 & 1, in = lane & 31;
            return (lane & 32) | (in & mask) | (((right ? in - by : in + by) & 31) & ~mask);
        }
        const int in = lane & 31;
        return (lane & 32) | ((((in & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31)) & 31);
    };
    gather(wave, i[F_vdst] - 256, i[F_addr] - 256, from, wave.exec());
}
static void permlane(Wave &wave, Instruction &i, bool other_row)
{
    const uint64_t select = scalar_operand(wave, i, 1) | (uint64_t)scalar_operand(wave, i, 2) << 32;
    const bool inactive = i[F_opsel] > 0 && i[F_opsel] & 1;
    const auto from = [&](int lane) {
        return ((lane & ~15) ^ (other_row ? 16 : 0)) | (int)(select >> 4 * (lane & 15) & 15);
    };
    gather(wave, i[F_vdst] - 256, operand(i, 0) - 256, from, wave.exec(), inactive);
}
static void v_permlane16(Wave &wave, Instruction &i) { permlane(wave, i, false); }
static void v_permlanex16(Wave &wave, Instruction &i) { permlane(wave, i, true); }
static void v_permlane64(Wave &wave, Instruction &i)
{
    if (wave.count == 32) return;
    gather(wave, i[F_vdst] - 256, operand(i, 0) - 256, [](int lane) { return lane ^ 32; }, wave.exec(), true);
}
static void v_swap(Wave &wave, Instruction &i)
{
    const int a = i[F_vdst] - 256, b = operand(i, 0) - 256;
    uint32_t one[LANES], two[LANES];
    memcpy(one, wave.row(a), sizeof one);
    memcpy(two, wave.row(b), sizeof two);
    const uint64_t known = wave.defined[a], other = wave.defined[b];
    write_row(wave, a, two, wave.exec(), other);
    write_row(wave, b, one, wave.exec(), known);
}
static void copy_row(Wave &wave, Instruction &i, int target, int source)
{
    uint32_t room[LANES];
    uint64_t known = ~0ull;
    const uint32_t *values = vector_source(wave, i, source, 0, room, &known);
    write_row(wave, target - 256, values, wave.exec(), known);
}
static void v_movrels(Wave &wave, Instruction &i) { copy_row(wave, i, i[F_vdst], operand(i, 0) + (int)wave.s[125]); }
static void v_movreld(Wave &wave, Instruction &i) { copy_row(wave, i, i[F_vdst] + (int)wave.s[125], operand(i, 0)); }
static void v_movrelsd(Wave &wave, Instruction &i)
{
    copy_row(wave, i, i[F_vdst] + (int)wave.s[125], operand(i, 0) + (int)wave.s[125]);
}
// Between vector registers and accumulators.
static void v_accvgpr_read(Wave &wave, Instruction &i)
{
    const int from = wave.machine->kernel->registers + i[F_src0] - 256;
    write_row(wave, i[F_vdst] - 256, wave.row(from), wave.exec(), wave.defined[from]);
}
static void v_accvgpr_write(Wave &wave, Instruction &i)
{
    uint32_t room[LANES];
    uint64_t known = ~0ull;
    const uint32_t *values = vector_source(wave, i, i[F_src0], 0, room, &known);
    const int to = wave.machine->kernel->registers + i[F_vdst] - 256;
    const uint64_t exec = wave.exec();
    for (int lane = 0; lane < wave.count; ++lane)
        if (exec >> lane & 1) wave.row(to)[lane] = values[lane];
    wave.defined[to] = (wave.defined[to] & ~exec) | (known & exec);
}
static void v_accvgpr_mov(Wave &wave, Instruction &i)
{
    const int base = wave.machine->kernel->registers, from = base + operand(i, 0) - 256, to = base + i[F_vdst] - 256;
    for (int lane = 0; lane < wave.count; ++lane)
        if (wave.exec() >> lane & 1) wave.row(to)[lane] = wave.row(from)[lane];
    wave.defined[to] = (wave.defined[to] & ~wave.exec()) | (wave.defined[from] & wave.exec());
}

Handler lanes_handler(const std::string &name)
{
    static const std::map<std::string, Handler> KNOWN = {
        {"V_READFIRSTLANE_B32", v_readfirstlane}, {"V_READLANE_B32", v_readlane}, {"V_WRITELANE_B32", v_writelane},
        {"DS_BPERMUTE_B32", ds_bpermute}, {"DS_PERMUTE_B32", ds_permute}, {"DS_SWIZZLE_B32", ds_swizzle},
        {"V_PERMLANE16_B32", v_permlane16}, {"V_PERMLANEX16_B32", v_permlanex16}, {"V_PERMLANE64_B32", v_permlane64},
        {"V_SWAP_B32", v_swap}, {"V_MOVRELS_B32", v_movrels}, {"V_MOVRELD_B32", v_movreld},
        {"V_MOVRELSD_B32", v_movrelsd}, {"V_ACCVGPR_READ", v_accvgpr_read}, {"V_ACCVGPR_WRITE", v_accvgpr_write},
        {"V_ACCVGPR_READ_B32", v_accvgpr_read}, {"V_ACCVGPR_WRITE_B32", v_accvgpr_write},
        {"V_ACCVGPR_MOV_B32", v_accvgpr_mov},
    };
    const auto found = KNOWN.find(name);
    return found == KNOWN.end() ? nullptr : found->second;
}

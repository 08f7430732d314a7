// Scalar instructions, branches, and what a wave says to its surroundings.
#include "isa.h"
#include <unordered_map>

static int m0() { return is_cdna ? 124 : 125; }

static int words_of(const Operation &o, int k, int given) { return o.words[k] ? (o.words[k] > 1 ? 2 : 1) : given; }

static void immediate_operands(Wave &wave, const Instruction &i, Scalars &a)
{
    const uint64_t old = scalar_source(wave, i, i[F_sdst], 1), value = (uint32_t)i[F_simm16];
    const bool compares = !(i.operation->flags & WritesTarget);
    a.immediate = (uint32_t)value;
    a.source[0] = is_cdna && !compares ? value : old;
    a.source[1] = value;
    a.target = old;
}

// The bits of a result that are known where those of the operands are: one by one for logic.
static uint64_t known_result(const char *name, uint64_t a, uint64_t b, uint64_t known_a, uint64_t known_b)
{
    const auto is = [&](const char *start) { return !strncmp(name, start, strlen(start)); };
    if (is("S_ANDN2_") || is("S_AND_NOT1_")) return (known_a & known_b) | (known_a & ~a) | (known_b & b);
    if (is("S_ORN2_") || is("S_OR_NOT1_")) return (known_a & known_b) | (known_a & a) | (known_b & ~b);
    if (is("S_AND_B") || is("S_NAND_B")) return (known_a & known_b) | (known_a & ~a) | (known_b & ~b);
    if (is("S_OR_B") || is("S_NOR_B")) return (known_a & known_b) | (known_a & a) | (known_b & b);
    if (is("S_XOR_B") || is("S_XNOR_B") || is("S_NOT_B") || is("S_MOV_B") || is("S_CSELECT")) return known_a & known_b;
    return ~known_a || ~known_b ? 0 : ~0ull;
}

static uint64_t launched_bits(const Wave &wave) { return wave.count == 64 ? ~0ull : 0xffffffffull; }

// Bits of lanes that don't run need not be known.
static void check_saved(const Wave &wave, const Operation &o, uint64_t known)
{
    const bool and_like = !strncmp(o.name, "S_AND", 5);
    const uint64_t needed = and_like ? wave.exec() : launched_bits(wave);
    if (wave.machine->check_defined && (known & needed) != needed)
        fault(wave, printed("%s takes EXEC from what nothing has written", o.name));
}

void scalar_step(Wave &wave, Instruction &i)
{
    const Operation &o = *i.operation;
    Scalars a = {};
    const Field names[] = {F_ssrc0, F_ssrc1};
    a.literal = i.literal;
    if (i.encoding->family == SOPK) immediate_operands(wave, i, a);
    else
        for (int k = 0; k < 2; ++k)
            if (i[names[k]] >= 0) a.source[k] = scalar_source(wave, i, i[names[k]], words_of(o, k, 1));
    const int words = o.target_words > 1 ? 2 : 1;
    if ((o.flags & ReadsTarget) && i[F_sdst] >= 0) a.target = scalar_source(wave, i, i[F_sdst], words);
    a.exec = wave.exec();
    a.vcc = wave.mask(VCC);
    a.scc = wave.scc;
    a.pc = i.address;
    uint64_t known[2];
    for (int k = 0; k < 2; ++k) known[k] = scalar_known(wave, i[names[k]], words_of(o, k, 1));
    const uint64_t result = known_result(o.name, a.source[0], a.source[1], known[0], known[1]);
    o.run(&a);
    const bool all = !~result;
    if ((o.flags & WritesExec || i[F_sdst] == EXEC) && (result & launched_bits(wave)) != launched_bits(wave)
        && !strstr(o.name, "SAVEEXEC") && wave.machine->check_defined)
        fault(wave, printed("%s takes EXEC from what nothing has written", o.name));
    if (strstr(o.name, "SAVEEXEC")) check_saved(wave, o, known[0]);
    if (o.flags & WritesScc) wave.scc = a.scc != 0, wave.scc_known = all || strstr(o.name, "SAVEEXEC");
    if (o.flags & WritesTarget)
        set_scalar(wave, i[F_sdst], words, a.target, i[F_sdst] < 108 && !strstr(o.name, "EXEC") ? result : ~0ull);
    if (o.flags & WritesExec) wave.set_mask(EXEC, a.exec);
    if (o.flags & WritesVcc) wave.set_mask(VCC, a.vcc);
}

void jump(Wave &wave, Instruction &i, uint64_t address)
{
    if (!i.target || i.target->address != address) i.target = find(wave, address);
    wave.at = i.target;
    wave.jumped = true;
}

static void branch(Wave &wave, Instruction &i, bool taken)
{
    if (taken) jump(wave, i, i.behind + 4 * (int64_t)(int16_t)i[F_simm16]);
}
static void need_scc(const Wave &wave)
{
    if (wave.machine->check_defined && !wave.scc_known) fault(wave, "a branch depends on what nothing has written");
}
static void nothing(Wave &, Instruction &) {}
static void s_branch(Wave &w, Instruction &i) { branch(w, i, true); }
static void s_scc0(Wave &w, Instruction &i) { need_scc(w), branch(w, i, !w.scc); }
static void s_scc1(Wave &w, Instruction &i) { need_scc(w), branch(w, i, w.scc); }
static void need_vcc(Wave &w)
{
    if (w.machine->check_defined && (w.mask_known(VCC) & w.exec()) != w.exec())
        fault(w, "a branch depends on what nothing has written");
}
static void s_vccz(Wave &w, Instruction &i) { need_vcc(w), branch(w, i, w.mask(VCC) == 0); }
static void s_vccnz(Wave &w, Instruction &i) { need_vcc(w), branch(w, i, w.mask(VCC) != 0); }
static void s_execz(Wave &w, Instruction &i) { branch(w, i, w.exec() == 0); }
static void s_execnz(Wave &w, Instruction &i) { branch(w, i, w.exec() != 0); }
static void s_endpgm(Wave &w, Instruction &) { w.state = State::Ended; }
static void s_barrier(Wave &w, Instruction &) { w.state = State::AtBarrier; }
static void s_trap(Wave &w, Instruction &i) { fault(w, printed("trapped (s_trap %d)", i[F_simm16])); }
static void s_getpc(Wave &w, Instruction &i)
{
    set_scalar(w, i[F_sdst], 2, (uint64_t)w.machine->kernel->object->base + i.behind);
}
static uint64_t code_address(Wave &w, uint64_t pointer) { return pointer - (uint64_t)w.machine->kernel->object->base; }
static void s_setpc(Wave &w, Instruction &i) { jump(w, i, code_address(w, scalar_source(w, i, i[F_ssrc0], 2))); }
static void s_swappc(Wave &w, Instruction &i)
{
    const uint64_t to = scalar_source(w, i, i[F_ssrc0], 2);
    s_getpc(w, i);
    jump(w, i, code_address(w, to));
}
static void s_call(Wave &w, Instruction &i)
{
    s_getpc(w, i);
    branch(w, i, true);
}
// Hardware registers that a kernel may ask for; the clock counts instructions.
static void s_getreg(Wave &w, Instruction &i)
{
    const int id = i[F_simm16] & 63, low = i[F_simm16] >> 6 & 31, bits = (i[F_simm16] >> 11 & 31) + 1;
    uint32_t value = 0;
    if (id == 29) value = (uint32_t)w.machine->clock;
    else if (id == 1) value = w.machine->kernel->descriptor.rsrc1 >> 12 & 0xff;
    else if (id == 15) value = (uint32_t)(SHARED_APERTURE >> 48 << 16 | PRIVATE_APERTURE >> 48);
    else fault(w, printed("hardware register %d isn't known to the executor", id));
    set_scalar(w, i[F_sdst], 1, value >> low & (bits == 32 ? ~0u : (1u << bits) - 1));
}
static void s_setreg(Wave &w, Instruction &i)
{
    if ((i[F_simm16] & 63) != 1) fault(w, printed("setting hardware register %d isn't known", i[F_simm16] & 63));
    const int low = i[F_simm16] >> 6 & 31, bits = (i[F_simm16] >> 11 & 31) + 1;
    const uint32_t value = i.operation->name[8] == '_' && strstr(i.operation->name, "IMM32") ? i.literal
        : (uint32_t)scalar_source(w, i, i[F_sdst], 1);
    const uint32_t now = w.machine->kernel->descriptor.rsrc1 >> 12 & 0xff;
    const uint32_t mask = (bits == 32 ? ~0u : (1u << bits) - 1) << low;
    // rounding and denormals as they are: another mode would need another operation
    if (((value << low ^ now) & mask & 0xff) != 0) fault(w, "a change of the rounding or denormal mode isn't known");
}
static uint32_t shifted(Wave &w, Instruction &i, Field name) { return i[name] + w.s[m0()]; }
static void s_movrels(Wave &w, Instruction &i)
{
    const int words = strstr(i.operation->name, "B64") ? 2 : 1;
    set_scalar(w, i[F_sdst], words, scalar_source(w, i, shifted(w, i, F_ssrc0), words));
}
static void s_movreld(Wave &w, Instruction &i)
{
    const int words = strstr(i.operation->name, "B64") ? 2 : 1;
    set_scalar(w, shifted(w, i, F_sdst), words, scalar_source(w, i, i[F_ssrc0], words));
}
static void s_wqm(Wave &w, Instruction &i)
{
    const int words = strstr(i.operation->name, "B64") ? 2 : 1;
    uint64_t x = scalar_source(w, i, i[F_ssrc0], words), y = 0;
    for (int k = 0; k < 64; k += 4)
        if (x >> k & 15) y |= 15ull << k;
    set_scalar(w, i[F_sdst], words, y);
    w.scc = y != 0;
}

Handler memory_handler(const std::string &name); // memory.cpp
Handler lanes_handler(const std::string &name);  // cross_lane.cpp
Handler matrix_handler(const std::string &name); // matrix.cpp

// No-ops, all of them: time, order of memory and exceptions aren't shown by this executor.
static bool without_effect(const std::string &name)
{
    static const char *const STARTS[] = {
        "S_NOP", "S_WAITCNT", "S_SLEEP", "S_SETPRIO", "S_DELAY_ALU", "S_CLAUSE", "S_INST_PREFETCH",
        "S_SET_INST_PREFETCH",
        "S_ICACHE_INV", "S_DCACHE", "S_GL1_INV", "BUFFER_GL0_INV", "BUFFER_GL1_INV", "BUFFER_WBL2", "BUFFER_INV",
        "S_SENDMSG", "S_TTRACEDATA", "S_SETHALT", "V_NOP", "V_PIPEFLUSH", "S_CODE_END", "S_WAIT_IDLE",
        "S_WAKEUP", "S_INCPERFLEVEL", "S_DECPERFLEVEL", "S_WAIT_EVENT", "S_WAIT_DEPCTR", "V_CLREXCP", "DS_NOP",
    };
    for (const char *start : STARTS)
        if (name.compare(0, strlen(start), start) == 0) return true;
    return false;
}

Handler handler_of(const std::string &name)
{
    static const std::unordered_map<std::string, Handler> KNOWN = {
        {"S_BRANCH", s_branch}, {"S_CBRANCH_SCC0", s_scc0}, {"S_CBRANCH_SCC1", s_scc1}, {"S_CBRANCH_VCCZ", s_vccz},
        {"S_CBRANCH_VCCNZ", s_vccnz}, {"S_CBRANCH_EXECZ", s_execz}, {"S_CBRANCH_EXECNZ", s_execnz},
        {"S_ENDPGM", s_endpgm}, {"S_BARRIER", s_barrier}, {"S_TRAP", s_trap}, {"S_GETPC_B64", s_getpc},
        {"S_SETPC_B64", s_setpc}, {"S_SWAPPC_B64", s_swappc}, {"S_CALL_B64", s_call}, {"S_GETREG_B32", s_getreg},
        {"S_SETREG_B32", s_setreg}, {"S_SETREG_IMM32_B32", s_setreg}, {"S_MOVRELS_B32", s_movrels},
        {"S_MOVRELS_B64", s_movrels}, {"S_MOVRELD_B32", s_movreld}, {"S_MOVRELD_B64", s_movreld},
        {"S_WQM_B32", s_wqm}, {"S_WQM_B64", s_wqm},
    };
    const auto found = KNOWN.find(name);
    if (found != KNOWN.end()) return found->second;
    if (without_effect(name)) return nothing;
    if (Handler handler = memory_handler(name)) return handler;
    if (Handler handler = lanes_handler(name)) return handler;
    return matrix_handler(name);
}

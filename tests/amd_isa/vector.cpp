// Vector instructions: operands of all lanes, what encodings do to them (DPP, SDWA, signs, halves), the operation, and
// what is written where EXEC says so.
#include "isa.h"
#include "isa_math.h"
#include <cstdlib>

typedef uint32_t Row[LANES];

struct Step { // an instruction on its way
    Wave &wave;
    Instruction &i;
    const Operation &o;
    uint64_t exec, lanes, defined = ~0ull, bits_known = ~0ull; // lanes: those that are written
    uint64_t known[2] = {~0ull, ~0ull}; // lanes whose operands have been written, by word
    Row room[3][2], target[2];
    Lanes a;
    Step(Wave &w, Instruction &x) : wave(w), i(x), o(*x.operation), exec(w.exec()), lanes(exec) {}
};

// Where lane `lane` reads by a DPP control; -1: nowhere.
static int dpp_lane(Wave &wave, int control, int lane)
{
    const int row = lane & ~15, in = lane & 15, n = control & 15;
    if (control <= 0xff) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
    if (control >= 0x101 && control <= 0x10f) return in + n < 16 ? lane + n : -1;
    if (control >= 0x111 && control <= 0x11f) return in >= n ? lane - n : -1;
    if (control >= 0x121 && control <= 0x12f) return row | ((in - n) & 15);
    if (control >= 0x150 && control <= 0x15f) return row | n;
    if (control >= 0x160 && control <= 0x16f && !is_cdna) return row | (in ^ n);
    switch (control) {
    case 0x130: return lane + 1 < wave.count ? lane + 1 : -1;
    case 0x134: return (lane + 1) % wave.count;
    case 0x138: return lane - 1;
    case 0x13c: return (lane + wave.count - 1) % wave.count;
    case 0x140: return row | (15 - in);
    case 0x141: return (lane & ~7) | (7 - (lane & 7));
    case 0x142: return row ? row - 1 : -1;
    case 0x143: return lane >= 32 ? 31 : -1;
    }
    fault(wave, printed("the DPP control %#x isn't known", control));
}

// Source 0 comes from other lanes; lanes that find none keep their target, or get 0 where bound_ctrl says so.
static void permute(Step &s, int word, const uint32_t *from, uint64_t *defined)
{
    uint32_t *to = s.room[0][word];
    Row found;
    uint64_t known = 0, written = s.lanes;
    const bool zero = s.i[F_bc] > 0, inactive = s.i[F_fi] > 0;
    for (int lane = 0; lane < s.wave.count; ++lane) {
        int other;
        if (s.i.dpp8) other = (lane & ~7) | s.i.field[F_lane_sel_0 + (lane & 7)];
        else other = dpp_lane(s.wave, s.i[F_dpp], lane);
        const bool readable = other >= 0 && (inactive || (s.exec >> other & 1));
        found[lane] = readable ? from[other] : 0;
        if (!readable) {
            known |= 1ull << lane;
            if (!zero && !s.i.dpp8) written &= ~(1ull << lane);
        } else known |= (*defined >> other & 1) << lane;
        const int row = lane / 16, bank = lane / 4 % 4;
        if (!s.i.dpp8 && !((s.i[F_row_mask] >> row & 1) && (s.i[F_bank_mask] >> bank & 1)))
            written &= ~(1ull << lane);
    }
    memcpy(to, found, sizeof found);
    *defined = known;
    s.lanes = written;
}

static uint32_t part_of(uint32_t x, int select, bool extend)
{
    if (select == 6) return x;
    const int low = select < 4 ? 8 * select : 16 * (select - 4), bits = select < 4 ? 8 : 16;
    const uint32_t part = x >> low & ((1u << bits) - 1);
    return extend ? (uint32_t)((int32_t)(part << (32 - bits)) >> (32 - bits)) : part;
}

static uint32_t signed_bits(uint32_t x, uint32_t sign, bool neg, bool abs)
{
    if (abs) x &= ~sign;
    return neg ? x ^ sign : x;
}

static void change(Step &s, int k, int word, uint32_t (*f)(uint32_t, int), int argument)
{
    const uint32_t *from = word ? s.a.high[k] : s.a.low[k];
    uint32_t *to = s.room[k][word];
    for (int lane = 0; lane < LANES; ++lane) to[lane] = f(from[lane], argument);
    (word ? s.a.high[k] : s.a.low[k]) = to;
}

static void change_signs(Step &s, int k, uint32_t sign, bool neg, bool abs)
{
    const int word = s.o.letters[k] == Float64;
    const int argument = (int)(neg | abs << 1) | (sign == 0x8000 ? 4 : 0);
    if (neg || abs)
        change(s, k, word, [](uint32_t x, int how) {
            return signed_bits(x, how & 4 ? 0x8000u : 0x80000000u, how & 1, how & 2);
        }, argument);
}

static bool flag(const Instruction &i, Field name, int k) { return i[name] > 0 && (i[name] >> k & 1); }

// The halves, or words, of a packed operand: selected and negated each.
static void select_packed(Step &s, int k)
{
    const bool low = flag(s.i, F_opsel, k), neg = flag(s.i, F_neg, k), neg_high = flag(s.i, F_neg_hi, k);
    const bool high = k < 2 ? flag(s.i, F_opsel_hi, k) : s.i[F_opsel_hi2] > 0;
    const Letter letter = (Letter)s.o.letters[k];
    if (letter == Packed32) {
        const uint32_t *words[2] = {s.a.low[k], s.a.high[k]};
        Row a, b;
        for (int lane = 0; lane < LANES; ++lane) {
            a[lane] = words[low][lane] ^ (neg ? 0x80000000u : 0);
            b[lane] = words[high][lane] ^ (neg_high ? 0x80000000u : 0);
        }
        memcpy(s.room[k][0], a, sizeof a);
        memcpy(s.room[k][1], b, sizeof b);
        s.a.low[k] = s.room[k][0], s.a.high[k] = s.room[k][1];
        return;
    }
    const bool floats = letter == Packed16;
    const int how = low | high << 1 | (floats && neg) << 2 | (floats && neg_high) << 3;
    if (how == 2) return;
    change(s, k, 0, [](uint32_t x, int how) {
        const uint32_t a = (how & 1 ? x >> 16 : x & 0xffff) ^ (how & 4 ? 0x8000 : 0);
        const uint32_t b = (how & 2 ? x >> 16 : x & 0xffff) ^ (how & 8 ? 0x8000 : 0);
        return a | b << 16;
    }, how);
}

// Operands of the mixed fma: floats, or halves that are widened.
static void widen_mixed(Step &s, int k)
{
    const bool half = k < 2 ? flag(s.i, F_opsel_hi, k) : s.i[F_opsel_hi2] > 0;
    const int how = half | flag(s.i, F_opsel, k) << 1 | flag(s.i, F_neg, k) << 2 | flag(s.i, F_neg_hi, k) << 3;
    change(s, k, 0, [](uint32_t x, int how) {
        if (how & 1) x = isa_f_bits(isa_h_from((how & 2 ? x >> 16 : x) & 0xffff));
        return signed_bits(x, 0x80000000u, how & 4, how & 8);
    }, how);
}

static bool short_register(const Step &s) { return s.i.encoding->family <= VOPC && !is_cdna && !s.i.sdwa; }

static void read_source(Step &s, int k)
{
    const Letter letter = (Letter)s.o.letters[k];
    int number = operand(s.i, k);
    if (number < 0) fault(s.wave, printed("%s has no source %d", s.o.name, k));
    if (s.i.sdwa && k == 0 && s.i[F_s0] > 0) number -= 256;
    if (s.i.sdwa && k == 1 && s.i[F_s1] > 0) number -= 256;
    const bool half = letter == Half || letter == Float16;
    bool high_half = half && s.i.encoding->family == VOP3 && flag(s.i, F_opsel, k);
    if (half && short_register(s) && number >= 256 + 128) number -= 128, high_half = true;
    const int words = s.o.words[k] > 1 ? 2 : 1;
    uint64_t known_words[2] = {~0ull, ~0ull};
    for (int word = 0; word < words; ++word) {
        uint64_t &known = known_words[word];
        const uint32_t *row = vector_source(s.wave, s.i, number, word, s.room[k][word], &known, letter, words);
        if ((s.i.dpp || s.i.dpp8) && k == 0) {
            permute(s, word, row, &known);
            row = s.room[0][word];
        }
        (word ? s.a.high[k] : s.a.low[k]) = row;
    }
    if (letter == Packed32) { // each half takes the word that it is told
        const bool low = flag(s.i, F_opsel, k), high = k < 2 ? flag(s.i, F_opsel_hi, k) : s.i[F_opsel_hi2] > 0;
        const uint64_t both[2] = {known_words[low], known_words[high]};
        memcpy(known_words, both, sizeof both);
    }
    for (int word = 0; word < 2; ++word) {
        s.known[word] &= known_words[word];
        s.defined &= known_words[word];
    }
    if (s.i.sdwa) {
        const int select = s.i[k ? F_src1_sel : F_src0_sel], extend = s.i[k ? F_src1_sext : F_src0_sext];
        if (select != 6) change(s, k, 0, [](uint32_t x, int how) { return part_of(x, how & 7, how & 8); },
                                select | (extend > 0 ? 8 : 0));
    }
    if (high_half) change(s, k, 0, [](uint32_t x, int) { return x >> 16; }, 0);
}

static bool is_mixed(const Operation &o) { return strstr(o.name, "_MIX") != nullptr; }

static void modify_source(Step &s, int k)
{
    const Letter letter = (Letter)s.o.letters[k];
    const Family family = s.i.encoding->family;
    if (family == VOP3P) {
        if (is_mixed(s.o)) widen_mixed(s, k);
        else if (letter == Packed16 || letter == Packed32 || letter == Pair) select_packed(s, k);
        else if (letter == Float32 && k == 2)
            change_signs(s, k, 0x80000000u, flag(s.i, F_neg, k), flag(s.i, F_neg_hi, k));
        return;
    }
    const uint32_t sign = letter == Float16 ? 0x8000u : 0x80000000u;
    if (s.i.dpp || s.i.sdwa) {
        static const Field NEG[] = {F_src0_neg, F_src1_neg}, ABS[] = {F_src0_abs, F_src1_abs};
        if (k < 2) change_signs(s, k, sign, s.i[NEG[k]] > 0, s.i[ABS[k]] > 0);
    }
    if (family == VOP3 || family == VOP3SD) change_signs(s, k, sign, flag(s.i, F_neg, k), flag(s.i, F_abs, k));
}

// Whether source 2 is a mask of bits, as of v_cndmask in its long encoding.
static bool mask_source(const Operation &o) { return (o.flags & ReadsBits) && o.words[2] && o.letters[2] == Bits; }

static void read_sources(Step &s)
{
    for (int k = 0; k < 3; ++k) {
        if (!s.o.words[k]) continue;
        if (k == 2 && mask_source(s.o)) continue;
        if (k == 2 && s.i.encoding->family < VOP3) continue; // the target, which it reads as such
        read_source(s, k);
        modify_source(s, k);
    }
    if (!(s.o.flags & ReadsBits)) return;
    const int mask = mask_source(s.o) && s.i[F_src2] >= 0 ? s.i[F_src2] : VCC;
    s.a.bits_in = mask < 128 ? s.wave.mask(mask) : scalar_source(s.wave, s.i, mask, 2);
    s.bits_known = mask < 108 ? s.wave.mask_known(mask) : ~0ull;
    s.defined &= s.bits_known;
}

// A low word of a sum comes from low words alone; words of a move or of a pair of floats come from one each.
static uint64_t known_word(const Step &s, int word)
{
    const auto is = [&](const char *start) { return !strncmp(s.o.name, start, strlen(start)); };
    if (is("V_MAD_U64_") || is("V_MAD_I64_") || is("V_LSHL_ADD_U64") || is("V_LSHLREV_B64"))
        return word ? s.defined : s.known[0] & s.bits_known;
    return is("V_MOV_B64") || s.o.letters[0] == Packed32 ? s.known[word] : s.defined;
}

// An instruction that puts parts of two registers together, as halves into one register, has one of them written first:
// what the other part holds until then is read with it, and stays unwritten in the register's other half. Bytes are put
// together by V_OR_B32.
static void define_merged(Step &s)
{
    static const struct { const char *name; int first, second; } MERGES[] = {
        {"V_BFI_B32", 1, 2}, {"V_PERM_B32", 0, 1}, {"V_AND_OR_B32", 0, 2}, {"V_LSHL_OR_B32", 0, 2}, {"V_OR_B32", 0, 1},
        {"V_PACK_B32_F16", 0, 1},
    };
    for (const auto &merge : MERGES) {
        if (strcmp(s.o.name, merge.name)) continue;
        uint64_t known[2] = {~0ull, ~0ull};
        Row room;
        vector_source(s.wave, s.i, operand(s.i, merge.first), 0, room, &known[0]);
        vector_source(s.wave, s.i, operand(s.i, merge.second), 0, room, &known[1]);
        s.defined = known[0] | known[1];
    }
}

// What a select doesn't take need not have been written.
static void define_selected(Step &s)
{
    if (strncmp(s.o.name, "V_CNDMASK", 9)) return;
    uint64_t known[2] = {~0ull, ~0ull};
    Row room;
    for (int k = 0; k < 2 && !s.i.dpp && !s.i.dpp8; ++k) {
        const bool scalar = s.i.sdwa && s.i[k ? F_s1 : F_s0] > 0;
        vector_source(s.wave, s.i, operand(s.i, k) - (scalar ? 256 : 0), 0, room, &known[k]);
    }
    s.defined = ((known[0] & ~s.a.bits_in) | (known[1] & s.a.bits_in)) & s.bits_known;
}

static float clipped(float x) { return isnan(x) || x < 0 ? 0 : x > 1 ? 1 : x; }

static bool starts_with(const char *&name, const char *start)
{
    const size_t n = strlen(start);
    return !strncmp(name, start, n) && (name += n);
}

// Sums and differences of integers, whole or of halves, that stay where they would leave their type.
static void saturate(Step &s)
{
    const char *name = s.o.name + 2; // behind V_
    const bool packed = starts_with(name, "PK_"), sum = starts_with(name, "ADD_");
    const bool reversed = !sum && starts_with(name, "SUBREV_"), known = sum || reversed || starts_with(name, "SUB_");
    starts_with(name, "NC_");
    const bool is_signed = *name == 'I';
    const int bits = atoi(name + 1);
    if (!known || (*name != 'U' && !is_signed) || (bits != 16 && bits != 32))
        fault(s.wave, printed("clamp of %s isn't known to the executor", s.o.name));
    const int64_t low = is_signed ? -(1ll << (bits - 1)) : 0, high = low + (1ll << bits) - 1;
    for (int lane = 0; lane < s.wave.count; ++lane)
        for (int at = 0; at < (packed ? 32 : bits); at += bits) {
            const auto number = [&](int k) {
                const uint64_t x = (uint64_t)s.a.low[k][lane] >> at << (64 - bits);
                return is_signed ? (int64_t)x >> (64 - bits) : (int64_t)(x >> (64 - bits));
            };
            const int64_t a = number(reversed), b = number(!reversed), x = sum ? a + b : a - b;
            const uint64_t mask = ((1ull << bits) - 1) << at;
            const uint64_t part = (uint64_t)(x < low ? low : x > high ? high : x) << at;
            s.target[0][lane] = (uint32_t)((s.target[0][lane] & ~mask) | (part & mask));
        }
}

static void scale_result(Step &s)
{
    const int omod = s.i[F_omod] > 0 ? s.i[F_omod] : 0, clamp = s.i[F_clmp] > 0;
    if (!omod && !clamp) return;
    static const float FACTOR[] = {1, 2, 4, 0.5f};
    const Letter letter = (Letter)s.o.target_letter;
    if (letter != Float32 && letter != Float16 && letter != Float64) return saturate(s);
    for (int lane = 0; lane < s.wave.count; ++lane) {
        uint32_t &low = s.target[0][lane], &high = s.target[1][lane];
        if (letter == Float32) {
            float x = isa_f_from(low) * FACTOR[omod];
            low = isa_f_bits(clamp ? clipped(x) : x);
        } else if (letter == Float16) {
            float x = isa_h_from(low & 0xffff) * FACTOR[omod];
            low = isa_h_bits(clamp ? clipped(x) : x);
        } else {
            double x = isa_d_from(low | (uint64_t)high << 32) * FACTOR[omod];
            if (clamp) x = isnan(x) || x < 0 ? 0 : x > 1 ? 1 : x;
            low = (uint32_t)isa_d_bits(x), high = isa_d_bits(x) >> 32;
        }
    }
}

static bool preserves_high(const Step &s)
{
    if (!is_cdna) return true;
    static const char *const NAMES[] = {"V_MAD_F16", "V_MAD_U16", "V_MAD_I16", "V_FMA_F16", "V_DIV_FIXUP_F16"};
    for (const char *name : NAMES)
        if (!strcmp(s.o.name, name)) return true;
    return false;
}

static void place_half(Step &s, int number, bool high)
{
    const bool keep = high || preserves_high(s);
    if (!keep) return;
    const uint32_t *old = s.wave.row(number);
    for (int lane = 0; lane < s.wave.count; ++lane) {
        const uint32_t half = s.target[0][lane] & 0xffff;
        s.target[0][lane] = high ? half << 16 | (old[lane] & 0xffff) : (old[lane] & 0xffff0000u) | half;
    }
}

static void place_sdwa(Step &s, int number)
{
    const int select = s.i[F_dst_sel], unused = s.i[F_dst_unused];
    if (select == 6) return;
    const int low = select < 4 ? 8 * select : 16 * (select - 4), bits = select < 4 ? 8 : 16;
    const uint32_t mask = ((1u << bits) - 1) << low;
    const uint32_t *old = s.wave.row(number);
    for (int lane = 0; lane < s.wave.count; ++lane) {
        const uint32_t part = s.target[0][lane] << low & mask;
        uint32_t rest = unused == 2 ? old[lane] & ~mask : 0;
        if (unused == 1 && part >> (low + bits - 1) & 1) rest = ~mask & ~((1u << low) - 1);
        s.target[0][lane] = part | rest;
    }
}

static void write_target(Step &s)
{
    int number = s.i[F_vdst] - 256;
    if (number < 0) { // a scalar, of v_readfirstlane's like
        fault(s.wave, printed("%s writes no vector register", s.o.name));
    }
    bool high = s.i.encoding->family == VOP3 && flag(s.i, F_opsel, 3);
    const bool half = s.o.flags & HalfTarget;
    if (half && short_register(s) && number >= 128) number -= 128, high = true;
    if (half && !s.i.sdwa) place_half(s, number, high);
    if (s.i.sdwa && s.i[F_dst_sel] >= 0) place_sdwa(s, number);
    for (int word = 0; word < (s.o.target_words > 1 ? 2 : 1); ++word)
        write_row(s.wave, number + word, s.target[word], s.lanes, known_word(s, word));
}

static void write_bits(Step &s)
{
    const uint64_t bits = s.a.bits_out & s.lanes;
    const int sdst = s.i[F_sdst] >= 0 ? s.i[F_sdst] : s.i[F_vdst] >= 0 ? s.i[F_vdst] : VCC;
    int to = VCC;
    if (s.i.encoding->family == VOP3 || s.i.encoding->family == VOP3SD) to = sdst;
    if (s.i.sdwa && s.i[F_sdst] >= 0 && s.i[F_sd] > 0) to = s.i[F_sdst];
    if ((s.o.flags & (Compares | WritesBits)) || is_cdna) {
        s.wave.set_mask(to, bits, s.defined | ~s.lanes);
    }
    if (s.o.flags & ComparesToExec) s.wave.set_mask(EXEC, bits);
}

static void compute(Step &s)
{
    s.a = {};
    s.a.count = s.wave.count;
    s.a.exec = s.exec;
    s.a.literal = s.i.literal;
    s.a.negations = s.i.encoding->family == VOP3P && s.i[F_neg] > 0 ? s.i[F_neg] : 0;
    s.a.to_low = s.target[0], s.a.to_high = s.target[1];
    read_sources(s);
    if (s.o.flags & ReadsTarget) {
        int number = s.i[F_vdst] - 256;
        if (s.o.flags & HalfTarget && short_register(s) && number >= 128) number -= 128;
        for (int word = 0; word < (s.o.target_words > 1 ? 2 : 1); ++word) {
            uint64_t known = ~0ull;
            Row room;
            memcpy(s.target[word], vector_source(s.wave, s.i, number + 256, word, room, &known), sizeof room);
        }
    }
    if (~s.defined) {
        define_merged(s);
        define_selected(s);
    }
    s.o.run(&s.a);
}

static void finish(Step &s)
{
    if (s.o.flags & WritesTarget) {
        scale_result(s);
        write_target(s);
    }
    if (s.o.flags & (Compares | ComparesToExec | WritesBits)) write_bits(s);
}

void vector_step(Wave &wave, Instruction &i)
{
    Step s(wave, i);
    compute(s);
    finish(s);
}

// Both halves read before either writes.
void dual_step(Wave &wave, Instruction &i)
{
    Step x(wave, i), y(wave, *i.second);
    compute(x);
    compute(y);
    finish(x);
    finish(y);
}

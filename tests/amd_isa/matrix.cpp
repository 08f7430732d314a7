// Matrix products of a wave: MFMA of CDNA, WMMA of RDNA 3. Where an element lies is AMD's matrix calculator's layout.
#include "isa.h"
#include "isa_math.h"
#include <cstdio>

enum Element { Float, Double, Half16, Bfloat16, Byte };

struct Shape {
    int rows, depth, blocks;
    Element element;
    bool integer_result;
};

static int bits_of(Element e) { return e == Double ? 64 : e == Float ? 32 : e == Byte ? 8 : 16; }

static bool shape_of(const std::string &name, Shape *s)
{
    char result[8], rest[40];
    int columns;
    s->blocks = 1;
    if (sscanf(name.c_str(), "V_MFMA_%3s_%dX%dX%d_%39s", result, &s->rows, &columns, &s->depth, rest) != 5)
        return false;
    std::string kind = rest;
    int blocks, used = 0;
    if (sscanf(rest, "%dB_%n", &blocks, &used) == 1 && used) s->blocks = blocks, kind = rest + used;
    s->integer_result = result[0] == 'I';
    static const std::map<std::string, Element> KINDS = {
        {"F32", Float}, {"F16", Half16}, {"BF16", Bfloat16}, {"I8", Byte}, {"F64", Double},
    };
    const auto found = KINDS.find(kind);
    if (found == KINDS.end()) return false;
    s->element = found->second;
    return s->rows == columns;
}

// A source of several registers: vector registers, accumulators, or one inline constant for all.
static uint32_t word_of(Wave &wave, Instruction &i, int number, bool accumulator, int word, int lane, bool wide)
{
    if (number < 256) {
        uint32_t room[LANES];
        uint64_t known = ~0ull;
        const Letter letter = wide ? Float64 : Float32;
        return vector_source(wave, i, number, wide ? word % 2 : 0, room, &known, letter, wide ? 2 : 1)[lane];
    }
    const int row = number - 256 + word + (accumulator ? wave.machine->kernel->registers : 0);
    if (wave.machine->check_defined && !(wave.defined[row] >> lane & 1))
        fault(wave, printed("%s takes %c%d of lane %d, which nothing has written", i.operation->name,
                            accumulator ? 'a' : 'v', number - 256 + word, lane));
    return wave.row(row)[lane];
}

struct Operand {
    Wave &wave;
    Instruction &i;
    int number;
    bool accumulator;
    double element(Element e, int index, int lane) const
    {
        const int bits = bits_of(e);
        if (e == Double) {
            const uint64_t low = word_of(wave, i, number, accumulator, 2 * index, lane, true);
            return isa_d_from(low | (uint64_t)word_of(wave, i, number, accumulator, 2 * index + 1, lane, true) << 32);
        }
        const uint32_t word = word_of(wave, i, number, accumulator, index * bits / 32, lane, false);
        const uint32_t x = word >> index * bits % 32;
        switch (e) {
        case Half16: return isa_h_from(x & 0xffff);
        case Bfloat16: return isa_b_from(x & 0xffff);
        case Byte: return (int8_t)x;
        default: return isa_f_from(x);
        }
    }
};

// Row, column and block of register `v` of a lane's results.
static void place_of(const Shape &s, int v, int lane, int *row, int *column, int *block)
{
    *column = lane % s.rows;
    *block = 0;
    if (s.element == Double && s.rows == 4) *row = lane / 16, *block = lane / 4 % 4;
    else if (s.element == Double) *row = lane / 16 + 4 * v;
    else if (s.rows == 32) *row = v % 16 / 4 * 8 + lane / 32 * 4 + v % 4, *block = v / 16;
    else if (s.rows == 16) *row = lane / 16 * 4 + v % 4, *block = v / 4;
    else *row = v, *block = lane / 4;
}

static void product(Wave &wave, Instruction &i, const Shape &s)
{
    if (i[F_cbsz] > 0 || i[F_abid] > 0 || i[F_blgp] > 0)
        fault(wave, printed("%s with a broadcast or a permutation isn't known to the executor", i.operation->name));
    const int acc = i[F_acc] > 0 ? i[F_acc] : 0, cd = i[F_acc_cd] > 0;
    const Operand a{wave, i, i[F_src0], (bool)(acc & 1)}, b{wave, i, i[F_src1], (bool)(acc & 2)};
    const Operand c{wave, i, i[F_src2], (bool)cd};
    const int per_lane = s.rows * s.blocks * s.depth / 64;
    static thread_local double left[32 * 64], right[32 * 64]; // [block][row][depth]
    for (int lane = 0; lane < 64; ++lane)
        for (int k = 0; k < per_lane; ++k) {
            const int row = lane % s.rows, block = lane / s.rows % s.blocks;
            const int depth = lane / (s.rows * s.blocks) * per_lane + k;
            const int at = (block * s.rows + row) * s.depth + depth;
            left[at] = a.element(s.element, k, lane);
            right[at] = b.element(s.element, k, lane);
        }
    const int results = s.rows * s.rows * s.blocks / 64, words = s.element == Double ? 2 : 1;
    const int to = i[F_vdst] - 256 + (cd ? wave.machine->kernel->registers : 0);
    static thread_local uint32_t found[32 * 2][LANES];
    for (int v = 0; v < results; ++v)
        for (int lane = 0; lane < 64; ++lane) {
            int row, column, block;
            place_of(s, v, lane, &row, &column, &block);
            const double *x = left + (block * s.rows + row) * s.depth, *y = right + (block * s.rows + column) * s.depth;
            if (s.integer_result) {
                int64_t sum = (int32_t)word_of(wave, i, c.number, c.accumulator, v, lane, false);
                for (int k = 0; k < s.depth; ++k) sum += (int64_t)x[k] * (int64_t)y[k];
                found[v][lane] = (uint32_t)sum;
                continue;
            }
            double sum = c.element(s.element == Double ? Double : Float, v, lane);
            for (int k = 0; k < s.depth; ++k)
                sum = s.element == Float ? fmaf((float)x[k], (float)y[k], (float)sum) : fma(x[k], y[k], sum);
            if (s.element == Double) {
                found[2 * v][lane] = (uint32_t)isa_d_bits(sum);
                found[2 * v + 1][lane] = isa_d_bits(sum) >> 32;
            } else found[v][lane] = isa_f_bits((float)sum);
        }
    for (int v = 0; v < results * words; ++v) {
        memcpy(wave.row(to + v), found[v], sizeof found[v]);
        wave.defined[to + v] = ~0ull;
    }
}

static void v_mfma(Wave &wave, Instruction &i)
{
    Shape s;
    shape_of(i.operation->name, &s);
    product(wave, i, s);
}

// Lanes 0-15 and 16-31 (and so on) hold the same rows of A and columns of B.
static void v_wmma(Wave &wave, Instruction &i)
{
    const std::string name = i.operation->name;
    const bool bytes = name.find("IU8") != std::string::npos, bfloats = name.find("_BF16") != std::string::npos;
    const Element element = bytes ? Byte : bfloats ? Bfloat16 : Half16;
    const bool floats = name.find("WMMA_F32") != std::string::npos;
    const Operand a{wave, i, i[F_src0], false}, b{wave, i, i[F_src1], false}, c{wave, i, i[F_src2], false};
    const int per_row = wave.count / 16, results = 16 / per_row, high = !floats && !bytes && i[F_opsel] & 4;
    const bool signs[2] = {(bool)(i[F_neg] & 1), (bool)(i[F_neg] & 2)};
    double left[16][16], right[16][16];
    for (int row = 0; row < 16; ++row)
        for (int k = 0; k < 16; ++k) {
            left[row][k] = a.element(element, k, row);
            right[row][k] = b.element(element, k, row);
            if (bytes && !signs[0] && left[row][k] < 0) left[row][k] += 256;
            if (bytes && !signs[1] && right[row][k] < 0) right[row][k] += 256;
        }
    uint32_t found[8][LANES];
    for (int v = 0; v < results; ++v)
        for (int lane = 0; lane < wave.count; ++lane) {
            const int row = per_row * v + lane / 16, column = lane % 16;
            const uint32_t old = word_of(wave, i, c.number, false, v, lane, false);
            double sum = bytes ? (double)(int32_t)old : floats ? isa_f_from(old)
                : bfloats ? isa_b_from(old >> 16 * high & 0xffff) : isa_h_from(old >> 16 * high & 0xffff);
            for (int k = 0; k < 16; ++k) sum += left[row][k] * right[column][k];
            if (bytes) found[v][lane] = (uint32_t)(int64_t)sum;
            else if (floats) found[v][lane] = isa_f_bits((float)sum);
            else {
                const uint32_t half = bfloats ? isa_b_bits((float)sum) : isa_h_bits(isa_h(sum));
                found[v][lane] = high ? (old & 0xffff) | half << 16 : (old & 0xffff0000u) | half;
            }
        }
    for (int v = 0; v < results; ++v) {
        const int row = i[F_vdst] - 256 + v;
        memcpy(wave.row(row), found[v], 4 * wave.count);
        wave.defined[row] = ~0ull;
    }
}

Handler matrix_handler(const std::string &name)
{
    Shape s;
    if (shape_of(name, &s)) return v_mfma;
    if (name.compare(0, 7, "V_WMMA_") == 0 && name.find("IU4") == std::string::npos) return v_wmma;
    return nullptr;
}

/* Iteration counts of parallel loops over several ranges, tested before a launch. */
#include "launcher.h"
#include <string.h>

/* A program is a list of these with their operands; `lang/loop_extents.py` writes it. */
enum {
    CONSTANT, /* value */
    SIZE,     /* slot */
    NUMBER,   /* slot, dtype code */
    ADD,
    SUB,
    MUL,
    FACTOR,  /* the value computed is one more factor of the product */
    END,     /* of the product */
    UNKNOWN, /* it can't be said here */
};
enum { DEPTH = 16 };

/* A number as it was packed, in the first bytes of its slot. 0: it is more than an int64 holds. */
static int read_number(const int64_t *slot, int64_t code, int64_t *value) {
    const int bits = 8 * pac_dtypes[code].itemsize;
    *value = *slot;
    if (pac_dtypes[code].kind == 'u') return bits < 64 || *value >= 0;
    if (bits < 64) *value = (int64_t)((uint64_t)*value << (64 - bits)) >> (64 - bits);
    return 1;
}

/* a, b -> a op b. 0: it is more than an int64 holds. */
static int combine(int64_t op, int64_t a, int64_t b, int64_t *result) {
    if (op == ADD) return !__builtin_add_overflow(a, b, result);
    if (op == SUB) return !__builtin_sub_overflow(a, b, result);
    return !__builtin_mul_overflow(a, b, result);
}

int pac_extents_may_overflow(const int64_t *program, Py_ssize_t count, const int64_t *slots) {
    int64_t stack[DEPTH + 1] = {0}, product = 1;
    int depth = 0, overflows = 0, is_empty = 0;
    for (const int64_t *op = program, *end = program + count; op < end; ++op) {
        int64_t *top = stack + depth; /* the next free place */
        switch (*op) {
        case CONSTANT: *top = *++op, ++depth; break;
        case SIZE: *top = slots[*++op], ++depth; break;
        case NUMBER:
            if (!read_number(&slots[op[1]], op[2], top)) return 1;
            op += 2, ++depth;
            break;
        case ADD:
        case SUB:
        case MUL:
            if (depth < 2 || !combine(*op, top[-2], top[-1], &top[-2])) return 1;
            --depth;
            break;
        case FACTOR:
            if (--depth < 0) return 1;
            if (top[-1] <= 0) is_empty = 1;
            else overflows |= __builtin_mul_overflow(product, top[-1], &product);
            break;
        case END:
            if (overflows && !is_empty) return 1;
            product = 1, overflows = is_empty = 0;
            break;
        default: return 1;
        }
        if (depth > DEPTH) return 1;
    }
    return 0;
}

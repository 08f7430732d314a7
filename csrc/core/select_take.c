/* The commonest selection on the host, in one pass: rows without gaps by one index array without gaps. */
#include <string.h>

#include "select.h"

/* `take` gives 0 at an index out of range, `check` before `put` writes anything. Sums are unsigned where wrong indices
   may overflow them. */
#define CHECK_LOOP(name, type)                                                                                        \
    static int check_##name(const char *indices, int64_t count, int64_t size)                                         \
    {                                                                                                                 \
        for (int64_t k = 0; k < count; k++) {                                                                         \
            type x;                                                                                                   \
            memcpy(&x, indices + k * (int64_t)sizeof x, sizeof x);                                                    \
            if ((uint64_t)x + (uint64_t)size >= 2 * (uint64_t)size) return 0;                                         \
        }                                                                                                             \
        return 1;                                                                                                     \
    }

#define ROW_LOOPS(name, type, bytes)                                                                                  \
    static int take_##name(char *to, const char *from, const char *indices, int64_t count, int64_t size,              \
                           int64_t stride, size_t row)                                                                \
    {                                                                                                                 \
        (void)row;                                                                                                    \
        for (int64_t k = 0; k < count; k++, to += bytes) {                                                            \
            type x;                                                                                                   \
            memcpy(&x, indices + k * (int64_t)sizeof x, sizeof x);                                                    \
            int64_t index = x + (x < 0 ? size : 0);                                                                   \
            if ((uint64_t)index >= (uint64_t)size) return 0;                                                          \
            memcpy(to, from + index * stride, bytes);                                                                 \
        }                                                                                                             \
        return 1;                                                                                                     \
    }                                                                                                                 \
    static void put_##name(char *to, const char *from, int64_t step, const char *indices, int64_t count, int64_t size,\
                           int64_t stride, size_t row)                                                                \
    {                                                                                                                 \
        (void)row;                                                                                                    \
        for (int64_t k = 0; k < count; k++, from += step) {                                                           \
            type x;                                                                                                   \
            memcpy(&x, indices + k * (int64_t)sizeof x, sizeof x);                                                    \
            memcpy(to + (x + (x < 0 ? size : 0)) * stride, from, bytes);                                              \
        }                                                                                                             \
    }

#define ALL_LOOPS(name, type)        \
    CHECK_LOOP(name, type)           \
    ROW_LOOPS(name##_1, type, 1)     \
    ROW_LOOPS(name##_2, type, 2)     \
    ROW_LOOPS(name##_4, type, 4)     \
    ROW_LOOPS(name##_8, type, 8)     \
    ROW_LOOPS(name##_16, type, 16)   \
    ROW_LOOPS(name##_any, type, row)

ALL_LOOPS(i32, int32_t)
ALL_LOOPS(i64, int64_t)

typedef int (*take_loop)(char *, const char *, const char *, int64_t, int64_t, int64_t, size_t);
typedef void (*put_loop)(char *, const char *, int64_t, const char *, int64_t, int64_t, int64_t, size_t);
static const take_loop take_loops[2][6] = {
    {take_i32_1, take_i32_2, take_i32_4, take_i32_8, take_i32_16, take_i32_any},
    {take_i64_1, take_i64_2, take_i64_4, take_i64_8, take_i64_16, take_i64_any},
};
static const put_loop put_loops[2][6] = {
    {put_i32_1, put_i32_2, put_i32_4, put_i32_8, put_i32_16, put_i32_any},
    {put_i64_1, put_i64_2, put_i64_4, put_i64_8, put_i64_16, put_i64_any},
};

static int loop_of(int64_t row)
{
    switch (row) {
    case 1: return 0;
    case 2: return 1;
    case 4: return 2;
    case 8: return 3;
    case 16: return 4;
    default: return 5;
    }
}

/* The index array, if the key is one that these loops take, and the result's rank and shape. NULL: another key, or a
   result without elements or with many. */
static pac_array *row_index(const pac_array *a, PyObject *key, int *ndim, int64_t *shape, int64_t *row)
{
    if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == 1) key = PyTuple_GET_ITEM(key, 0);
    if (!PAC_IS_ARRAY(key)) return NULL;
    pac_array *index = (pac_array *)key;
    int middle = PAC_NDIM(index), rest = PAC_NDIM(a) - 1;
    if (PAC_CODE(index) != PAC_I32 && PAC_CODE(index) != PAC_I64) return NULL;
    if ((index->key | a->key) & (PAC_MARKED | PAC_DEVICE) || index->key & PAC_STRIDED) return NULL;
    if (!middle || middle > PAC_SELECT_MIDDLE || rest < 0 || rest >= PAC_SELECT_NDIM) return NULL;
    if (rest && a->key & PAC_STRIDED) return NULL;
    *row = PAC_ITEMSIZE(a);
    for (int k = 0; k < middle; k++) shape[k] = PAC_SHAPE(index)[k];
    for (int k = 0; k < rest; k++) *row *= shape[middle + k] = PAC_SHAPE(a)[k + 1];
    *ndim = middle + rest;
    return pac_few_elements(*ndim, shape) > 0 ? index : NULL;
}

/* A size of 1 may have any stride, which then isn't a row's. */
static int64_t row_stride(const pac_array *a) { return PAC_SHAPE(a)[0] > 1 ? PAC_STRIDES(a)[0] : 0; }

PyObject *pac_take_rows(pac_array *a, PyObject *key)
{
    int ndim;
    int64_t shape[PAC_SELECT_AXES], row;
    pac_array *index = row_index(a, key, &ndim, shape, &row);
    if (!index) Py_RETURN_NOTIMPLEMENTED;
    const uint64_t before = pac_relayouts; /* the allocation may run Python, which resizes arrays */
    pac_array *out = pac_array_fresh(pac_ndarray_type, PAC_CODE(a), ndim, shape, a->buffer->device, 0);
    if (!out) return NULL;
    take_loop take = take_loops[PAC_CODE(index) == PAC_I64][loop_of(row)];
    if (before == pac_relayouts && take(pac_host_memory(out), pac_host_memory(a), pac_host_memory(index), index->size,
                                        PAC_SHAPE(a)[0], row_stride(a), (size_t)row)) return (PyObject *)out;
    Py_DECREF(out);
    Py_RETURN_NOTIMPLEMENTED;
}

int pac_put_rows(pac_array *a, PyObject *key, const pac_array *value, const char *number)
{
    int ndim;
    int64_t shape[PAC_SELECT_AXES], row, step = 0;
    pac_array *index = row_index(a, key, &ndim, shape, &row);
    if (!index || pac_may_overlap(a, index)) return 0;
    if (value && value->size != 1) {
        if (value->key & PAC_STRIDED || PAC_NDIM(value) != ndim) return 0;
        if (memcmp(PAC_SHAPE(value), shape, (size_t)ndim * sizeof *shape)) return 0;
        step = row;
    } else if (row != PAC_ITEMSIZE(a)) {
        return 0;
    }
    int wide = PAC_CODE(index) == PAC_I64;
    const char *indices = pac_host_memory(index);
    if (!(wide ? check_i64 : check_i32)(indices, index->size, PAC_SHAPE(a)[0])) return 0;
    put_loops[wide][loop_of(row)](pac_host_memory(a), value ? pac_host_memory(value) : number, step, indices,
                                  index->size, PAC_SHAPE(a)[0], row_stride(a), (size_t)row);
    return 1;
}

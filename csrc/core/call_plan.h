/* A plan's data, read from what Python describes (plan_read.c) and done (call_plan.c). */
#pragma once
#include "plan.h"

enum { PAC_PLAN_BUFFERS = 32 };

/* A number that is read from the call: an address `at` bytes on; the size or stride of axis `at` times `factor`; the
   number of elements; that divided by `at`, but at most `factor`; a number for the dtype of code `at`; `at` itself. */
enum pac_source_kind { PAC_CONSTANT, PAC_OPERAND, PAC_BUFFER, PAC_DIM, PAC_STRIDE, PAC_SIZE, PAC_QUOTIENT, PAC_NUMBER };
typedef struct {
    uint8_t kind, index; /* of the operand, buffer or number */
    int64_t at, factor;
} pac_source;

typedef struct {
    int count;
    pac_source *source;
} pac_product;

typedef struct {
    int slot;
    pac_source source;
} pac_fill;

/* A launch, or a Python function that is called with `count` elements of the host's memory. */
typedef struct {
    PyObject *launch, *check; /* one of them is NULL */
    int fills, code, count;
    uint32_t first; /* a bit for each written operand that this launch is the first to get: their owners are told */
    pac_fill *fill;
    pac_product size; /* of work, in elements; empty: as the launch says */
    pac_source elements;
} pac_step;

/* A condition: a product lies in a range, or two numbers are equal. */
typedef struct {
    int equal;
    int64_t low, high;
    pac_product product;
} pac_condition;

/* The result, or a part of it. */
enum pac_result_kind { PAC_RESULT_NONE, PAC_RESULT_OPERAND, PAC_RESULT_LIST, PAC_RESULT_TUPLE, PAC_RESULT_ARRAY };
typedef struct pac_result {
    enum pac_result_kind kind;
    int index; /* of the operand or buffer */
    int count; /* of items */
    struct pac_result *item;
    PyObject *class; /* of a named tuple, else NULL */
    uint64_t key;
    int ordered;      /* in C order: `dims` are sizes alone */
    pac_source *dims; /* sizes, then strides */
    int is_view, view_ndim, view_code, as_run; /* then the result is a view of that array */
    int64_t view_offset, *view_dims;
} pac_result;

typedef struct {
    PyObject_HEAD
    int of_types, operands, buffers, steps, conditions;
    PyObject *compute; /* a Python function of the call's numbers that gives `computed` further ones, or NULL */
    int computed;
    uint32_t written; /* a bit for each operand that is written */
    pac_product *buffer; /* bytes */
    pac_step *step;
    pac_condition *condition;
    pac_result result;
    void *blocks; /* a list of what was allocated for these arrays */
} pac_plan;

/* Fills a new plan in. 0 with an exception. */
int pac_plan_read(pac_plan *plan, PyObject *args);

/* Calls `visit` with the place of each reference. */
int pac_plan_references(pac_plan *plan, int (*visit)(PyObject **, void *), void *arg);

/* Call plans: what a warm call of a library function does, as data. */
#pragma once
#include "cache.h"
#include "launch.h"

/* ---- calls as keys (call_key.c) --------------------------------------------------------------------------------- */

enum {
    PAC_CALL_WORDS = 64,    /* of arguments: types of arrays, values of what else is passed */
    PAC_CALL_LAYOUT = 192,  /* of shapes, strides and aliasing */
    PAC_CALL_OBJECTS = 24,  /* that are compared as such: texts, dtypes, names of keywords */
    PAC_CALL_OPERANDS = 16, /* arrays */
    PAC_CALL_NUMBERS = 16,
};

/* An array of a call as it was when its key was made. */
typedef struct {
    pac_array *array;
    pac_buffer *buffer;
    uintptr_t ptr;
    int64_t size;
    int ndim;
    const int64_t *dims; /* sizes, then strides: in the key */
} pac_call_operand;

/* A call: what its result depends on but for elements of arrays and, where they are operands too, numbers. Objects are
   borrowed. `word` has a word for `pac_call_key`, those of the arguments, and `layout` again. */
typedef struct {
    int words, layouts, objects, operands, numbers;
    uint64_t types_hash, hash; /* of the arguments' words; of layouts, too */
    uint64_t word[PAC_CALL_WORDS + PAC_CALL_LAYOUT];
    int64_t layout[PAC_CALL_LAYOUT];
    PyObject *object[PAC_CALL_OBJECTS];
    pac_call_operand operand[PAC_CALL_OPERANDS];
    PyObject *number[PAC_CALL_NUMBERS];
    const char *why; /* it has no key: what is in the way */
    PyObject *what;  /* an argument without a key, or NULL */
} pac_call;

/* Which floats, complex numbers and integers of Python are operands, of which a key has the class: those at positions
   that have a bit, and, if there are any, those of all keywords but these. */
typedef struct {
    uint64_t positions;
    PyObject *without; /* a tuple of names */
} pac_call_numbers;

/* Reads a call. 0, without an exception: an argument can't be compared. */
int pac_call_read(pac_call *call, const pac_call_numbers *numbers, PyObject *const *args, Py_ssize_t count,
                  PyObject *names);

/* The call's key, which borrows from it: of types and layouts, or of types alone. */
pac_key pac_call_key(pac_call *call, int of_types);

/* Whether a key is of types alone. */
int pac_key_of_types(const pac_key *key);

/* What the arguments are, as a list: (dtype's row, type key, shape, strides) of an array, (name,) before the value of a
   keyword, other things as they are, tuples as lists; and of aliasing operands (k, j, bytes from j to k, the first that
   is the same array). NULL with an exception. */
PyObject *pac_key_describe(const pac_key *key);

/* ---- bound launches (bound_launch.c) ---------------------------------------------------------------------------- */

extern PyTypeObject *pac_bound_launch_type;

/* The number of argument slots. */
Py_ssize_t pac_bound_slots(PyObject *bound);

/* Copies what is known of the slots. */
void pac_bound_copy(PyObject *bound, int64_t *slots);

int pac_bound_run(PyObject *bound, const int64_t *slots, int64_t size);

/* ---- plans (call_plan.c) ---------------------------------------------------------------------------------------- */

extern PyTypeObject *pac_plan_type;

/* Whether the plan's key is of types alone; whether it computes numbers of the call's, in Python. */
int pac_plan_of_types(PyObject *plan);
int pac_plan_computes(PyObject *plan);

/* Whether the plan names nothing that a call of its key doesn't have; whether its checks hold for such a call. */
int pac_plan_fits(PyObject *plan, const pac_call *call);
int pac_plan_holds(PyObject *plan, pac_call *call);

/* Does what the plan says for a call with its key: the result; Py_NotImplemented, of nothing done, where its checks
   fail; NULL with an exception. The call is held. */
PyObject *pac_plan_run(PyObject *plan, pac_call *call);

/* ---- the cache (plan_table.c) ----------------------------------------------------------------------------------- */

extern PyTypeObject *pac_table_type;

/* Calls the table's function, or runs the plan of such calls. */
PyObject *pac_table_call(PyObject *table, PyObject *const *args, size_t flags, PyObject *names);

/* Keys of calls. A key says all that a call's launches depend on: how many words the arguments have and whether layouts
   follow; the words of arguments, each behind a tag that says how many there are, so that keys of different calls
   differ; shapes, strides and aliasing. */
#include "plan.h"
#include <string.h>

/* The lowest byte of a word; what is above it belongs to the tag. */
enum tag { ARRAY = 1, NUMBER, NONE, FALSE_, TRUE_, INTEGER, FLOAT, COMPLEX, OBJECT, TUPLE, LIST, KEYWORD };
enum { DEEPEST = 8 }; /* of tuples and lists */

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int refuse(pac_call *call, const char *why, PyObject *what) {
    call->why = why;
    call->what = what;
    return 0;
}

static int add_word(pac_call *call, uint64_t word) {
    if (call->words == PAC_CALL_WORDS) return refuse(call, "there are too many arguments", NULL);
    call->word[call->words++] = word;
    call->types_hash = pac_mixed(call->types_hash, word);
    return 1;
}

static int add_bits(pac_call *call, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return add_word(call, bits);
}

/* An object, by the address of what is the same where it is equal, else by its hash. */
static int add_object(pac_call *call, enum tag tag, PyObject *x, int by_address) {
    if (call->objects == PAC_CALL_OBJECTS) return refuse(call, "there are too many arguments", NULL);
    const Py_hash_t hash = by_address ? (Py_hash_t)((uintptr_t)x >> 4) : PyObject_Hash(x);
    if (hash == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return refuse(call, "has no hash", x);
    }
    call->object[call->objects++] = x;
    return add_word(call, tag | (uint64_t)hash << 8);
}

static int add_array(pac_call *call, pac_array *a) {
    const int ndim = PAC_NDIM(a);
    if (a->key & PAC_MARKED) return refuse(call, "is marked", (PyObject *)a);
    if (call->operands == PAC_CALL_OPERANDS || call->layouts + 2 * ndim > PAC_CALL_LAYOUT)
        return refuse(call, "there are too many arrays", NULL);
    pac_call_operand *x = &call->operand[call->operands++];
    x->array = a;
    x->buffer = a->buffer;
    x->ptr = a->ptr;
    x->size = a->size;
    x->ndim = ndim;
    x->dims = &call->layout[call->layouts];
    for (int k = 0; k < 2 * ndim; ++k) call->layout[call->layouts++] = a->dims[k];
    return add_word(call, ARRAY | a->key << 8);
}

static int add_integer(pac_call *call, PyObject *x) {
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow) return add_object(call, OBJECT, x, 0);
    return add_word(call, INTEGER) && add_word(call, (uint64_t)value);
}

static int add_number(pac_call *call, PyObject *x, uint64_t class) {
    if (call->numbers == PAC_CALL_NUMBERS) return refuse(call, "there are too many numbers", NULL);
    call->number[call->numbers++] = x;
    return add_word(call, NUMBER | class << 8);
}

/* Whether it is a row of the table of dtypes, or a dtype of one of their classes in NumPy. */
static int is_dtype(PyObject *x, int *is_row) {
    *is_row = Py_TYPE(x) == Py_TYPE(pac_dtypes[0].row);
    for (int code = 0; code < PAC_CODES && !*is_row; ++code)
        if (Py_TYPE(x) == Py_TYPE(pac_dtypes[code].numpy)) return 1;
    return *is_row;
}

static int add(pac_call *call, PyObject *x, int numbers, int depth);

static int add_items(pac_call *call, PyObject *x, int depth) {
    const int is_list = PyList_CheckExact(x);
    const Py_ssize_t count = is_list ? PyList_GET_SIZE(x) : PyTuple_GET_SIZE(x);
    if (depth == DEEPEST) return refuse(call, "is nested too deeply", x);
    if (!add_word(call, (is_list ? LIST : TUPLE) | (uint64_t)count << 8)) return 0;
    for (Py_ssize_t k = 0; k < count; ++k) /* hashing runs no Python that could change the list */
        if (!add(call, is_list ? PyList_GET_ITEM(x, k) : PyTuple_GET_ITEM(x, k), 0, depth + 1)) return 0;
    return 1;
}

static int add(pac_call *call, PyObject *x, int numbers, int depth) {
    if (PAC_IS_ARRAY(x)) return add_array(call, (pac_array *)x);
    if (x == Py_None) return add_word(call, NONE);
    if (PyBool_Check(x)) return add_word(call, x == Py_True ? TRUE_ : FALSE_);
    if (PyLong_CheckExact(x)) return numbers ? add_number(call, x, 1) : add_integer(call, x);
    if (PyFloat_CheckExact(x)) {
        if (numbers) return add_number(call, x, 2);
        return add_word(call, FLOAT) && add_bits(call, PyFloat_AS_DOUBLE(x));
    }
    if (PyComplex_CheckExact(x)) {
        if (numbers) return add_number(call, x, 3);
        const Py_complex value = PyComplex_AsCComplex(x);
        return add_word(call, COMPLEX) && add_bits(call, value.real) && add_bits(call, value.imag);
    }
    if (PyUnicode_CheckExact(x)) return add_object(call, OBJECT, x, 0);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) return add_items(call, x, depth);
    if (Py_TYPE(x) == &PyType_Type) return add_object(call, OBJECT, x, 1);
    int is_row;
    if (is_dtype(x, &is_row)) return add_object(call, OBJECT, x, is_row);
    return refuse(call, "can't be compared", x);
}

/* Which operands share a buffer, with their distance in it, and which are one array: a plan addresses a buffer from its
   first operand, and returns an operand where the call did. */
static int add_aliases(pac_call *call) {
    for (int k = 1; k < call->operands; ++k) {
        const pac_call_operand *x = &call->operand[k];
        int j = 0, same = 0;
        while (j < k && call->operand[j].buffer != x->buffer) ++j;
        if (j == k) continue;
        while (call->operand[same].array != x->array) ++same;
        if (call->layouts + 2 > PAC_CALL_LAYOUT) return refuse(call, "there are too many arrays", NULL);
        call->layout[call->layouts++] = (int64_t)k << 32 | j << 16 | same;
        call->layout[call->layouts++] = (int64_t)(x->ptr - call->operand[j].ptr);
    }
    return 1;
}

/* Whether a number that is passed by this position or keyword is an operand. */
static int is_operand(const pac_call_numbers *numbers, Py_ssize_t position, PyObject *keyword) {
    if (!keyword) return position < 64 && numbers->positions >> position & 1;
    if (!numbers->positions) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(numbers->without); ++k)
        if (!PyUnicode_Compare(PyTuple_GET_ITEM(numbers->without, k), keyword)) return 0;
    return 1;
}

int pac_call_read(pac_call *call, const pac_call_numbers *numbers, PyObject *const *args, Py_ssize_t count,
                  PyObject *names) {
    const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    call->layouts = call->objects = call->operands = call->numbers = 0;
    call->words = 1;
    call->types_hash = 0;
    call->why = NULL;
    call->what = NULL;
    for (Py_ssize_t k = 0; k < count + keywords; ++k) {
        PyObject *keyword = k < count ? NULL : PyTuple_GET_ITEM(names, k - count);
        if (keyword && !add_object(call, KEYWORD, keyword, 0)) return 0;
        if (!add(call, args[k], is_operand(numbers, k, keyword), 0)) return 0;
    }
    if (call->operands > 1 && !add_aliases(call)) return 0;
    call->hash = call->types_hash;
    for (int k = 0; k < call->layouts; ++k) call->hash = pac_mixed(call->hash, (uint64_t)call->layout[k]);
    memcpy(call->word + call->words, call->layout, (size_t)call->layouts * sizeof *call->layout);
    return 1;
}

enum { OF_TYPES = 1 }; /* of a key's first word; above it the number of words that are not of layouts */

pac_key pac_call_key(pac_call *call, int of_types) {
    call->word[0] = (uint64_t)call->words << 1 | (of_types ? OF_TYPES : 0);
    return (pac_key){of_types ? call->types_hash : call->hash, call->words + (of_types ? 0 : call->layouts),
                     call->objects, call->word, call->object};
}

int pac_key_of_types(const pac_key *key) { return key->word[0] & OF_TYPES; }

/* ---- keys in words ---------------------------------------------------------------------------------------------- */

typedef struct {
    const pac_key *key;
    int words, word, layout, object; /* words of arguments; what is next */
} reader;

static double bits(uint64_t word) {
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static PyObject *read_array(reader *r, uint64_t type) {
    const int ndim = (int)(type >> 8 & 0xFF);
    PyObject *row = pac_dtypes[type & 0xFF].row;
    if (pac_key_of_types(r->key)) return Py_BuildValue("OKOO", row, (unsigned long long)type, Py_None, Py_None);
    const int64_t *dims = (const int64_t *)r->key->word + r->words + r->layout;
    r->layout += 2 * ndim;
    return Py_BuildValue("OKNN", row, (unsigned long long)type, pac_tuple_of(dims, ndim),
                         pac_tuple_of(dims + ndim, ndim));
}

static PyObject *read_item(reader *r) {
    static PyTypeObject *const classes[] = {NULL, &PyLong_Type, &PyFloat_Type, &PyComplex_Type};
    const uint64_t word = r->key->word[r->word++], more = word >> 8;
    switch ((enum tag)(word & 0xFF)) {
    case ARRAY: return read_array(r, more);
    case NUMBER: return Py_NewRef(classes[more & 3]);
    case FALSE_: Py_RETURN_FALSE;
    case TRUE_: Py_RETURN_TRUE;
    case INTEGER: return PyLong_FromLongLong((long long)r->key->word[r->word++]);
    case FLOAT: return PyFloat_FromDouble(bits(r->key->word[r->word++]));
    case COMPLEX:
        r->word += 2;
        return PyComplex_FromDoubles(bits(r->key->word[r->word - 2]), bits(r->key->word[r->word - 1]));
    case OBJECT: return Py_NewRef(r->key->object[r->object++]);
    case KEYWORD: return Py_BuildValue("(O)", r->key->object[r->object++]);
    case TUPLE:
    case LIST: {
        PyObject *items = PyList_New((Py_ssize_t)more);
        for (Py_ssize_t k = 0; items && k < (Py_ssize_t)more; ++k) {
            PyObject *item = read_item(r);
            if (!item) Py_CLEAR(items);
            else PyList_SET_ITEM(items, k, item);
        }
        return items;
    }
    case NONE: break;
    }
    Py_RETURN_NONE;
}

PyObject *pac_key_describe(const pac_key *key) {
    reader r = {key, (int)(key->word[0] >> 1), 1, 0, 0};
    PyObject *found = PyList_New(0);
    while (found && r.word < r.words) {
        PyObject *item = read_item(&r);
        if (!item || PyList_Append(found, item) < 0) Py_CLEAR(found);
        Py_XDECREF(item);
    }
    for (; found && r.words + r.layout < key->words; r.layout += 2) {
        const int64_t *pair = (const int64_t *)key->word + r.words + r.layout;
        PyObject *item = Py_BuildValue("iiLi", (int)(pair[0] >> 32), (int)(pair[0] >> 16 & 0xFFFF), (long long)pair[1],
                                       (int)(pair[0] & 0xFFFF));
        if (!item || PyList_Append(found, item) < 0) Py_CLEAR(found);
        Py_XDECREF(item);
    }
    return found;
}

/* Arguments of a launch: arrays as operands, numbers in slots. */
#include "launcher.h"
#include <string.h>

int pac_operand_read(PyObject *x, pac_operand *operand) {
    if (!PAC_IS_ARRAY(x) && !PyObject_TypeCheck(x, pac_base_type)) return 0;
    pac_array *a = (pac_array *)x;
    if (!a->buffer) return 0;
    *operand = (pac_operand){a->key, a->ptr, a->size, PAC_SHAPE(a), PAC_STRIDES(a), a, NULL};
    return 1;
}

int pac_operand_read_foreign(PyObject *x, pac_foreign *view, pac_operand *operand) {
    const int done = pac_foreign_read(x, view);
    if (done == 1)
        *operand = (pac_operand){view->key, view->ptr, view->size, view->dims, view->dims + view->ndim, NULL, view};
    return done;
}

/* ---- classes of numbers ----------------------------------------------------------------------------------------- */

/* The dtype whose NumPy class the object has exactly; -1: none. */
static int scalar_code(PyObject *x) {
    for (int code = 0; code < PAC_CODES; ++code)
        if ((PyObject *)Py_TYPE(x) == pac_dtypes[code].scalar) return code;
    return -1;
}

uint64_t pac_number_word(PyObject *x) {
    const uint64_t number = (uint64_t)1 << 40; /* no type key of an array has it */
    if (PyFloat_CheckExact(x)) return number | 1;
    if (PyLong_CheckExact(x)) return number | 2;
    if (PyBool_Check(x)) return number | 3;
    if (PyComplex_CheckExact(x)) return number | 4;
    const int code = scalar_code(x);
    return code < 0 ? 0 : number | 16 | (uint64_t)code;
}

int pac_takes_number(PyObject *x, int code) {
    const char *order = "biufc", kind = pac_dtypes[code].kind;
    char given;
    if (PyFloat_CheckExact(x)) given = 'f';
    else if (PyBool_Check(x)) given = 'b';
    else if (PyLong_CheckExact(x)) given = 'i';
    else if (PyComplex_CheckExact(x)) given = 'c';
    else {
        const int scalar = scalar_code(x);
        if (scalar < 0) return 0;
        given = pac_dtypes[scalar].kind;
    }
    if ((given == 'i' || given == 'u') && (kind == 'i' || kind == 'u')) return 1;
    return strchr(order, given) <= strchr(order, kind);
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

static int out_of_range(PyObject *x, int code) {
    PyErr_Format(PyExc_OverflowError, "%R is out of range for %S", x, pac_dtypes[code].row);
    return 0;
}

/* An integer in the first bytes of a slot of zeros. */
static int pack_integer(PyObject *x, int code, int64_t *slot) {
    const int is_unsigned = pac_dtypes[code].kind == 'u', bits = 8 * pac_dtypes[code].itemsize - !is_unsigned;
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (number == -1 && !overflow && PyErr_Occurred()) return 0;
    if (overflow > 0 && bits == 64) {
        const unsigned long long large = PyLong_AsUnsignedLongLong(x);
        if (large == (unsigned long long)-1 && PyErr_Occurred()) return 0;
        memcpy(slot, &large, sizeof large);
        return 1;
    }
    if (overflow || (is_unsigned && number < 0)) return out_of_range(x, code);
    if (bits < 63 && (number >= 1LL << bits || number < (is_unsigned ? 0 : -(1LL << bits))))
        return out_of_range(x, code);
    memcpy(slot, &number, (size_t)pac_dtypes[code].itemsize); /* little-endian */
    return 1;
}

static int is_numpy_bool(PyObject *x) { return (PyObject *)Py_TYPE(x) == pac_dtypes[PAC_BOOL].scalar; }

static int pack_bool(PyObject *x, int64_t *slot) {
    if (!PyBool_Check(x) && !is_numpy_bool(x)) { /* anything has a truth value: only bools are meant */
        PyErr_Format(PyExc_TypeError, "expected a bool, got %s", Py_TYPE(x)->tp_name);
        return 0;
    }
    const int is_true = PyObject_IsTrue(x);
    *slot = is_true;
    return is_true >= 0;
}

static int pack_complex(PyObject *x, int64_t *slots) {
    Py_complex value = {0, 0};
    if (PyUnicode_Check(x) || PyBytes_Check(x)) {
        PyErr_SetString(PyExc_TypeError, "expected a number, got text");
        return 0;
    }
    PyObject *number = PyComplex_CheckExact(x) ? Py_NewRef(x) : PyObject_CallOneArg((PyObject *)&PyComplex_Type, x);
    if (!number) return 0;
    value = PyComplex_AsCComplex(number);
    Py_DECREF(number);
    memcpy(&slots[0], &value.real, sizeof value.real);
    memcpy(&slots[1], &value.imag, sizeof value.imag);
    return 2;
}

int pac_pack_argument(PyObject *x, int code, int64_t *slots) {
    const char kind = pac_dtypes[code].kind;
    slots[0] = 0;
    if (kind == 'f') {
        const double value = PyFloat_AsDouble(x);
        if (value == -1.0 && PyErr_Occurred()) return 0;
        memcpy(slots, &value, sizeof value);
        return 1;
    }
    if (kind == 'c') return pack_complex(x, slots);
    if (kind == 'b') return pack_bool(x, slots);
    if (PyLong_Check(x)) return pack_integer(x, code, slots);
    PyObject *index = is_numpy_bool(x) ? PyLong_FromLong(PyObject_IsTrue(x)) : PyNumber_Index(x);
    const int packed = index && pack_integer(index, code, slots);
    Py_XDECREF(index);
    return packed;
}

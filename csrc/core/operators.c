/* Operators of arrays: the Map of the ufunc, and what it leaves to the general function. */
#include "core.h"
#include <string.h>

enum op {
    ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, POW, AND, OR, XOR, LSHIFT, RSHIFT, /* also in place, from IN_PLACE on */
    IN_PLACE,
    LT = 2 * IN_PLACE, LE, EQ, NE, GT, GE, /* in the order of Py_LT ... Py_GE */
    NEG, POS, ABS, INVERT,
    OPERATORS
};

static const char *const names[] = {
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift",
    "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift",
    "lt", "le", "eq", "ne", "gt", "ge", "neg", "pos", "abs", "invert",
};

static PyObject *maps[OPERATORS], *general[OPERATORS];

/* register_operator(name, map, function): `name` without underscores; `function` does what the map declines. */
PyObject *pac_register_operator(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *name;
    PyObject *map, *function;
    if (!PyArg_ParseTuple(args, "sO!O", &name, pac_map_type, &map, &function)) return NULL;
    for (int op = 0; op < OPERATORS; ++op) {
        if (strcmp(names[op], name)) continue;
        Py_XSETREF(maps[op], Py_NewRef(map));
        Py_XSETREF(general[op], Py_NewRef(function));
        Py_RETURN_NONE;
    }
    PyErr_Format(PyExc_ValueError, "%s is no operator", name);
    return NULL;
}

static PyObject *operate(int op, PyObject *const *operands, int count, PyObject *out) {
    if (!maps[op]) Py_RETURN_NOTIMPLEMENTED;
    PyObject *result = pac_map_call(maps[op], operands, count, out, 0);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return PyObject_Vectorcall(general[op], operands, (size_t)count, NULL);
}

static PyObject *binary(int op, PyObject *x, PyObject *y) {
    PyObject *operands[] = {x, y};
    return operate(op, operands, 2, NULL);
}

static PyObject *in_place(int op, PyObject *x, PyObject *y) {
    PyObject *operands[] = {x, y};
    return operate(IN_PLACE + op, operands, 2, x);
}

#define BINARY(name, op) \
    static PyObject *name(PyObject *x, PyObject *y) { return binary(op, x, y); } \
    static PyObject *inplace_##name(PyObject *x, PyObject *y) { return in_place(op, x, y); }
#define UNARY(name, op) \
    static PyObject *name(PyObject *x) { return operate(op, &x, 1, NULL); }

BINARY(add, ADD)
BINARY(subtract, SUB)
BINARY(multiply, MUL)
BINARY(true_divide, TRUEDIV)
BINARY(floor_divide, FLOORDIV)
BINARY(modulo, MOD)
BINARY(and, AND)
BINARY(or, OR)
BINARY(xor, XOR)
BINARY(lshift, LSHIFT)
BINARY(rshift, RSHIFT)
UNARY(negative, NEG)
UNARY(positive, POS)
UNARY(absolute, ABS)
UNARY(invert, INVERT)

/* Maps of the functions that floats are raised to some numbers by, as `POWERS` of api/core/ufunc.py has them. */
static struct {
    double exponent;
    PyObject *map;
} powers[4];

/* register_power(exponent, map) */
PyObject *pac_register_power(PyObject *Py_UNUSED(module), PyObject *args) {
    double exponent;
    PyObject *map;
    if (!PyArg_ParseTuple(args, "dO!", &exponent, pac_map_type, &map)) return NULL;
    for (size_t k = 0; k < sizeof powers / sizeof *powers; ++k) {
        if (powers[k].map && powers[k].exponent != exponent) continue;
        powers[k].exponent = exponent;
        Py_XSETREF(powers[k].map, Py_NewRef(map));
        Py_RETURN_NONE;
    }
    PyErr_Format(PyExc_ValueError, "there are exponents enough");
    return NULL;
}

/* Floats to one of those exponents, and integers to the power 2; Py_NotImplemented for others. */
static PyObject *known_power(PyObject *x, PyObject *y) {
    const int whole = PyLong_CheckExact(y);
    if (!PAC_IS_ARRAY(x) || !(whole || PyFloat_CheckExact(y))) Py_RETURN_NOTIMPLEMENTED;
    const char kind = PAC_KIND((pac_array *)x);
    int overflow = 0;
    const double exponent = whole ? (double)PyLong_AsLongLongAndOverflow(y, &overflow) : PyFloat_AS_DOUBLE(y);
    for (size_t k = 0; !overflow && k < sizeof powers / sizeof *powers && powers[k].map; ++k) {
        if (powers[k].exponent != exponent) continue;
        if (kind == 'f' || ((kind == 'i' || kind == 'u') && whole && exponent == 2))
            return pac_map_call(powers[k].map, &x, 1, NULL, 0);
    }
    Py_RETURN_NOTIMPLEMENTED;
}

static PyObject *power(PyObject *x, PyObject *y, PyObject *modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    PyObject *result = known_power(x, y);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return binary(POW, x, y);
}

static PyObject *inplace_power(PyObject *x, PyObject *y, PyObject *modulus) {
    return modulus == Py_None ? in_place(POW, x, y) : Py_NewRef(Py_NotImplemented);
}

static PyObject *compare(PyObject *x, PyObject *y, int op) { return binary(LT + op, x, y); }

PyType_Slot pac_operator_slots[] = {
    {Py_nb_add, add},                            {Py_nb_inplace_add, inplace_add},
    {Py_nb_subtract, subtract},                  {Py_nb_inplace_subtract, inplace_subtract},
    {Py_nb_multiply, multiply},                  {Py_nb_inplace_multiply, inplace_multiply},
    {Py_nb_true_divide, true_divide},            {Py_nb_inplace_true_divide, inplace_true_divide},
    {Py_nb_floor_divide, floor_divide},          {Py_nb_inplace_floor_divide, inplace_floor_divide},
    {Py_nb_remainder, modulo},                   {Py_nb_inplace_remainder, inplace_modulo},
    {Py_nb_and, and},                            {Py_nb_inplace_and, inplace_and},
    {Py_nb_or, or},                              {Py_nb_inplace_or, inplace_or},
    {Py_nb_xor, xor},                            {Py_nb_inplace_xor, inplace_xor},
    {Py_nb_lshift, lshift},                      {Py_nb_inplace_lshift, inplace_lshift},
    {Py_nb_rshift, rshift},                      {Py_nb_inplace_rshift, inplace_rshift},
    {Py_nb_power, power},                        {Py_nb_inplace_power, inplace_power},
    {Py_nb_negative, negative},                  {Py_nb_positive, positive},
    {Py_nb_absolute, absolute},                  {Py_nb_invert, invert},
    {Py_tp_richcompare, compare},                {Py_tp_hash, PyObject_HashNotImplemented},
    {0},
};

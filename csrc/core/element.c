/* One element as a Python number, and back. */
#include "core.h"
#include <math.h>
#include <string.h>

static double half_value(const char *at) { return PyFloat_Unpack2(at, 1); }

static double bfloat_value(const char *at) {
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static double e5m2_value(const char *at) { /* the upper byte of a float16 */
    const char half[2] = {0, *at};
    return half_value(half);
}

/* Four bits of exponent with bias 7, three of mantissa; no infinity, and one NaN of each sign. */
static double e4m3_value(const char *at) {
    const unsigned bits = *(const unsigned char *)at, exponent = bits >> 3 & 15, mantissa = bits & 7;
    double value = exponent ? ldexp(8 + mantissa, (int)exponent - 10) : ldexp(mantissa, -9);
    if ((bits & 127) == 127) value = Py_NAN;
    return bits & 128 ? -value : value;
}

#define LOAD(code, type, make) \
    case code: { \
        type value; \
        memcpy(&value, at, sizeof value); \
        return make(value); \
    }

PyObject *pac_load_element(const char *at, int code) {
    switch (code) {
        LOAD(PAC_BOOL, uint8_t, PyBool_FromLong)
        LOAD(PAC_I8, int8_t, PyLong_FromLong)
        LOAD(PAC_I16, int16_t, PyLong_FromLong)
        LOAD(PAC_I32, int32_t, PyLong_FromLong)
        LOAD(PAC_I64, int64_t, PyLong_FromLongLong)
        LOAD(PAC_U8, uint8_t, PyLong_FromLong)
        LOAD(PAC_U16, uint16_t, PyLong_FromLong)
        LOAD(PAC_U32, uint32_t, PyLong_FromUnsignedLong)
        LOAD(PAC_U64, uint64_t, PyLong_FromUnsignedLongLong)
        LOAD(PAC_F32, float, PyFloat_FromDouble)
        LOAD(PAC_F64, double, PyFloat_FromDouble)
    case PAC_F16: return PyFloat_FromDouble(half_value(at));
    case PAC_BF16: return PyFloat_FromDouble(bfloat_value(at));
    case PAC_E4M3: return PyFloat_FromDouble(e4m3_value(at));
    case PAC_E5M2: return PyFloat_FromDouble(e5m2_value(at));
    case PAC_C64: {
        float parts[2];
        memcpy(parts, at, sizeof parts);
        return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    default: {
        double parts[2];
        memcpy(parts, at, sizeof parts);
        return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    }
}

static int store_integer(char *at, int code, PyObject *value) {
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return 0;
    const int itemsize = pac_dtypes[code].itemsize, is_unsigned = code >= PAC_U8;
    if (is_unsigned && number < 0) return 0;
    if (itemsize < 8) {
        const int bits = 8 * itemsize - !is_unsigned;
        if (number >= 1LL << bits || number < (is_unsigned ? 0 : -(1LL << bits))) return 0;
    }
    memcpy(at, &number, (size_t)itemsize); /* little-endian */
    return 1;
}

static int store_floating(char *at, int code, PyObject *value) {
    const double number = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyLong_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
        PyErr_Clear(); /* too large: the general way says so */
        return 0;
    }
    const float narrow = (float)number;
    if (code == PAC_F64) memcpy(at, &number, sizeof number);
    else memcpy(at, &narrow, sizeof narrow);
    return 1;
}

int pac_store_element(char *at, int code, PyObject *value) {
    const int is_bool = PyBool_Check(value), is_int = is_bool || PyLong_CheckExact(value);
    if (code == PAC_BOOL) {
        if (is_bool) *at = value == Py_True;
        return is_bool;
    }
    if (pac_dtypes[code].kind == 'i' || pac_dtypes[code].kind == 'u')
        return is_int ? store_integer(at, code, value) : 0;
    if (code == PAC_F32 || code == PAC_F64)
        return is_int || PyFloat_CheckExact(value) ? store_floating(at, code, value) : 0;
    return 0;
}

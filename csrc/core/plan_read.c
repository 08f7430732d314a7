/* CallPlan(operands, buffers, steps, result, written, conditions, numbers): what Python describes, read into arrays of
   C. */
#include "call_plan.h"
#include <limits.h>
#include <string.h>

/* Memory that the plan frees. NULL with an exception. */
static void *room(pac_plan *plan, Py_ssize_t count, size_t size) {
    void **block = PyMem_Calloc(1, sizeof *block + (size_t)count * size);
    if (!block) return PyErr_NoMemory();
    *block = plan->blocks;
    plan->blocks = block;
    return block + 1;
}

static PyObject *expect_tuple(PyObject *x, const char *what) {
    if (PyTuple_Check(x)) return x;
    PyErr_Format(PyExc_TypeError, "a call plan: expected %s as a tuple, got %R", what, x);
    return NULL;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static int read_source(const pac_plan *plan, PyObject *x, pac_source *source) {
    static const char *const kinds[] = {"", "operand", "buffer", "dim", "stride", "size", "quotient", "number"};
    const char *name;
    int index;
    long long at, factor = 1;
    if (PyLong_Check(x)) {
        source->kind = PAC_CONSTANT;
        source->at = PyLong_AsLongLong(x);
        return !PyErr_Occurred();
    }
    if (!expect_tuple(x, "(kind, index, axis or offset)") || !PyArg_ParseTuple(x, "siL|L", &name, &index, &at, &factor))
        return 0;
    int kind = PAC_OPERAND;
    while (kind <= PAC_NUMBER && strcmp(kinds[kind], name)) ++kind;
    const int most = kind == PAC_BUFFER ? plan->buffers : kind == PAC_NUMBER ? PAC_CALL_NUMBERS : plan->operands;
    const int has_axis = kind == PAC_DIM || kind == PAC_STRIDE;
    if (kind > PAC_NUMBER || index < 0 || index >= most || (has_axis && (at < 0 || at >= PAC_MAX_NDIM)) ||
        (kind == PAC_NUMBER && (at < 0 || at >= PAC_CODES)) || (kind == PAC_QUOTIENT && at < 1)) {
        PyErr_Format(PyExc_ValueError, "a call plan of %d operands and %d buffers has no %R", plan->operands,
                     plan->buffers, x);
        return 0;
    }
    source->kind = (uint8_t)kind;
    source->index = (uint8_t)index;
    source->at = at;
    source->factor = factor;
    return 1;
}

static pac_source *read_sources(pac_plan *plan, PyObject *x, int *count) {
    if (!expect_tuple(x, "numbers")) return NULL;
    *count = (int)PyTuple_GET_SIZE(x);
    pac_source *sources = room(plan, *count, sizeof *sources);
    for (int k = 0; sources && k < *count; ++k)
        if (!read_source(plan, PyTuple_GET_ITEM(x, k), &sources[k])) return NULL;
    return sources;
}

static int read_product(pac_plan *plan, PyObject *x, pac_product *product) {
    product->source = read_sources(plan, x, &product->count);
    return product->source != NULL;
}

static int64_t *read_constants(pac_plan *plan, PyObject *x, int count) {
    if (!expect_tuple(x, "integers")) return NULL;
    if (PyTuple_GET_SIZE(x) != count) {
        PyErr_Format(PyExc_ValueError, "a call plan: expected %d integers, got %R", count, x);
        return NULL;
    }
    int64_t *numbers = room(plan, count, sizeof *numbers);
    for (int k = 0; numbers && k < count; ++k) {
        numbers[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(x, k));
        if (PyErr_Occurred()) return NULL;
    }
    return numbers;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* (launch, ((slot, number), ...), size) */
static int read_launch(pac_plan *plan, PyObject *x, pac_step *step) {
    PyObject *launch, *fills, *size;
    if (!PyArg_ParseTuple(x, "O!O!O", pac_bound_launch_type, &launch, &PyTuple_Type, &fills, &size)) return 0;
    step->launch = Py_NewRef(launch);
    step->fills = (int)PyTuple_GET_SIZE(fills);
    step->fill = room(plan, step->fills, sizeof *step->fill);
    for (int k = 0; step->fill && k < step->fills; ++k) {
        pac_fill *fill = &step->fill[k];
        PyObject *source;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fills, k), "iO", &fill->slot, &source) ||
            !read_source(plan, source, &fill->source))
            return 0;
        const int wide = fill->source.kind == PAC_NUMBER && pac_dtypes[fill->source.at].kind == 'c';
        if (fill->slot < 0 || fill->slot + wide >= pac_bound_slots(launch)) {
            PyErr_Format(PyExc_ValueError, "a call plan: the launch has no slot %d", fill->slot);
            return 0;
        }
    }
    return step->fill && read_product(plan, size, &step->size);
}

/* (function, number, code, count) */
static int read_check(pac_plan *plan, PyObject *x, pac_step *step) {
    PyObject *check, *elements;
    if (!PyArg_ParseTuple(x, "OOii", &check, &elements, &step->code, &step->count)) return 0;
    if (!read_source(plan, elements, &step->elements)) return 0;
    if (step->code < 0 || step->code >= PAC_CODES || step->count < 0) {
        PyErr_Format(PyExc_ValueError, "a call plan can't check %d elements of dtype %d", step->count, step->code);
        return 0;
    }
    step->check = Py_NewRef(check);
    return 1;
}

/* A later launch may be the first that writes an operand: a plan doesn't say which does. */
static void find_first(pac_step *step, uint32_t *left) {
    for (int k = 0; k < step->fills; ++k)
        if (step->fill[k].source.kind == PAC_OPERAND) step->first |= *left & 1u << step->fill[k].source.index;
    *left &= ~step->first;
}

static int read_steps(pac_plan *plan, PyObject *steps) {
    uint32_t left = plan->written;
    plan->step = room(plan, PyTuple_GET_SIZE(steps), sizeof *plan->step);
    if (!plan->step) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(steps); ++k) {
        PyObject *x = expect_tuple(PyTuple_GET_ITEM(steps, k), "a step");
        pac_step *step = &plan->step[plan->steps++]; /* counted first: its references are given back with the plan */
        if (!x || !(PyTuple_GET_SIZE(x) == 3 ? read_launch(plan, x, step) : read_check(plan, x, step))) return 0;
        find_first(step, &left);
    }
    return 1;
}

/* (low, high, (number, ...)): low <= product <= high; ("equal", number, number) */
static int read_conditions(pac_plan *plan, PyObject *conditions) {
    plan->condition = room(plan, PyTuple_GET_SIZE(conditions), sizeof *plan->condition);
    if (!plan->condition) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(conditions); ++k) {
        PyObject *x = expect_tuple(PyTuple_GET_ITEM(conditions, k), "a condition"), *product;
        pac_condition *c = &plan->condition[plan->conditions++];
        if (!x) return 0;
        if (PyTuple_GET_SIZE(x) == 3 && PyUnicode_Check(PyTuple_GET_ITEM(x, 0))) {
            c->equal = 1;
            c->product.count = 2;
            c->product.source = room(plan, 2, sizeof *c->product.source);
            if (!c->product.source || !read_source(plan, PyTuple_GET_ITEM(x, 1), &c->product.source[0]) ||
                !read_source(plan, PyTuple_GET_ITEM(x, 2), &c->product.source[1]))
                return 0;
            continue;
        }
        long long low, high;
        if (!PyArg_ParseTuple(x, "LLO", &low, &high, &product) || !read_product(plan, product, &c->product)) return 0;
        c->low = low;
        c->high = high;
    }
    return 1;
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

/* ("array", buffer, key, sizes, strides or None, view or None); a view is (offset, sizes, strides, code, as_run) */
static int read_array(pac_plan *plan, PyObject *x, pac_result *r) {
    PyObject *sizes, *strides, *view, *view_sizes, *view_strides;
    const char *kind;
    unsigned long long key;
    if (!PyArg_ParseTuple(x, "siKO!OO", &kind, &r->index, &key, &PyTuple_Type, &sizes, &strides, &view)) return 0;
    const int ndim = (int)(key >> 8 & 0xFF);
    r->kind = PAC_RESULT_ARRAY;
    r->key = key;
    r->ordered = strides == Py_None;
    PyObject *dims = r->ordered ? Py_NewRef(sizes) : PySequence_Concat(sizes, strides);
    int count;
    r->dims = dims ? read_sources(plan, dims, &count) : NULL;
    Py_XDECREF(dims);
    if (!r->dims) return 0;
    if (r->index < 0 || r->index >= plan->buffers || ndim > PAC_MAX_NDIM || (key & 0xFF) >= PAC_CODES ||
        key & PAC_MARKED || count != (r->ordered ? ndim : 2 * ndim)) {
        PyErr_Format(PyExc_ValueError, "a call plan of %d buffers can't return %R", plan->buffers, x);
        return 0;
    }
    if (view == Py_None) return 1;
    long long offset;
    r->is_view = 1;
    if (!PyArg_ParseTuple(view, "LO!O!ip", &offset, &PyTuple_Type, &view_sizes, &PyTuple_Type, &view_strides,
                          &r->view_code, &r->as_run))
        return 0;
    r->view_offset = offset;
    r->view_ndim = (int)PyTuple_GET_SIZE(view_sizes);
    PyObject *both = PySequence_Concat(view_sizes, view_strides);
    r->view_dims = both ? read_constants(plan, both, 2 * r->view_ndim) : NULL;
    Py_XDECREF(both);
    if (!r->view_dims) return 0;
    if (r->view_code >= 0 && r->view_code < PAC_CODES && r->view_ndim <= PAC_MAX_NDIM) return 1;
    PyErr_Format(PyExc_ValueError, "a call plan can't return the view %R", view);
    return 0;
}

/* None, ("operand", k), ("list", items), ("tuple", items), ("named", class, items) or an array. */
static int read_result(pac_plan *plan, PyObject *x, pac_result *r, int depth) {
    const char *kind;
    PyObject *first, *items = NULL;
    if (x == Py_None) return 1;
    if (!expect_tuple(x, "a result")) return 0;
    if (PyTuple_GET_SIZE(x) > 3) return read_array(plan, x, r);
    if (!PyArg_ParseTuple(x, "sO|O", &kind, &first, &items)) return 0;
    if (!strcmp(kind, "operand")) {
        r->kind = PAC_RESULT_OPERAND;
        r->index = (int)PyLong_AsLong(first);
        if (!PyErr_Occurred() && r->index >= 0 && r->index < plan->operands) return 1;
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "a call plan has no operand %d", r->index);
        return 0;
    }
    r->kind = strcmp(kind, "list") ? PAC_RESULT_TUPLE : PAC_RESULT_LIST;
    if (items) r->class = Py_NewRef(first);
    items = expect_tuple(items ? items : first, "items");
    if (!items || depth > 8) return !items ? 0 : (PyErr_SetString(PyExc_ValueError, "nested too deeply"), 0);
    r->item = room(plan, PyTuple_GET_SIZE(items), sizeof *r->item);
    for (Py_ssize_t k = 0; r->item && k < PyTuple_GET_SIZE(items); ++k)
        if (!read_result(plan, PyTuple_GET_ITEM(items, k), &r->item[r->count++], depth + 1)) return 0;
    return r->item != NULL;
}

/* (function, count) */
static int read_computed(pac_plan *plan, PyObject *x) {
    PyObject *compute;
    if (!expect_tuple(x, "what computes numbers") || !PyArg_ParseTuple(x, "Oi", &compute, &plan->computed)) return 0;
    if (plan->computed < 0 || plan->computed > PAC_CALL_NUMBERS) {
        PyErr_Format(PyExc_ValueError, "a call plan computes up to %d numbers, got %d", PAC_CALL_NUMBERS,
                     plan->computed);
        return 0;
    }
    plan->compute = Py_NewRef(compute);
    return 1;
}

int pac_plan_read(pac_plan *plan, PyObject *args) {
    PyObject *buffers, *steps, *result, *written, *conditions, *numbers = Py_None;
    if (!PyArg_ParseTuple(args, "iO!O!OO!O|O", &plan->operands, &PyTuple_Type, &buffers, &PyTuple_Type, &steps, &result,
                          &PyTuple_Type, &written, &conditions, &numbers))
        return 0;
    if (plan->operands < 1 || plan->operands > PAC_CALL_OPERANDS || PyTuple_GET_SIZE(buffers) > PAC_PLAN_BUFFERS) {
        PyErr_Format(PyExc_ValueError, "a call plan has 1 to %d operands and up to %d buffers, got %d and %zd",
                     PAC_CALL_OPERANDS, PAC_PLAN_BUFFERS, plan->operands, PyTuple_GET_SIZE(buffers));
        return 0;
    }
    const int count = (int)PyTuple_GET_SIZE(buffers);
    plan->buffer = room(plan, count, sizeof *plan->buffer);
    for (int k = 0; plan->buffer && k < count; ++k)
        if (!read_product(plan, PyTuple_GET_ITEM(buffers, k), &plan->buffer[k])) return 0;
    plan->buffers = count; /* whose sizes aren't those of others */
    plan->of_types = conditions != Py_None;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(written); ++k) {
        const long operand = PyLong_AsLong(PyTuple_GET_ITEM(written, k));
        if (PyErr_Occurred()) return 0;
        if (operand >= 0 && operand < plan->operands) plan->written |= 1u << operand;
    }
    if (numbers != Py_None && !read_computed(plan, numbers)) return 0;
    if (!plan->buffer || !read_steps(plan, steps)) return 0;
    if (plan->of_types && (!expect_tuple(conditions, "conditions") || !read_conditions(plan, conditions))) return 0;
    return read_result(plan, result, &plan->result, 0);
}

/* ---- references ------------------------------------------------------------------------------------------------- */

static int result_references(pac_result *r, int (*visit)(PyObject **, void *), void *arg) {
    int stop = r->class ? visit(&r->class, arg) : 0;
    for (int k = 0; k < r->count && !stop; ++k) stop = result_references(&r->item[k], visit, arg);
    return stop;
}

int pac_plan_references(pac_plan *plan, int (*visit)(PyObject **, void *), void *arg) {
    int stop = plan->compute ? visit(&plan->compute, arg) : 0;
    for (int k = 0; k < plan->steps && !stop; ++k) {
        pac_step *step = &plan->step[k];
        if (step->launch) stop = visit(&step->launch, arg);
        if (step->check && !stop) stop = visit(&step->check, arg);
    }
    return stop ? stop : result_references(&plan->result, visit, arg);
}

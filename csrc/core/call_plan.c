/* CallPlan: allocate, launch, make the result. */
#include "call_plan.h"
#include <string.h>

enum { SMALL = 96 /* slots on the C stack */ };

PyTypeObject *pac_plan_type;

/* One run of a plan. */
typedef struct {
    const pac_plan *plan;
    const pac_call *call;
    int allocated;
    pac_buffer *buffer[PAC_PLAN_BUFFERS];
} run;

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static int64_t number(const run *r, const pac_source *source) {
    const pac_call_operand *x = &r->call->operand[source->index];
    switch ((enum pac_source_kind)source->kind) {
    case PAC_OPERAND: return (int64_t)x->ptr + source->at;
    case PAC_BUFFER: return (int64_t)r->buffer[source->index]->ptr + source->at;
    case PAC_DIM: return x->dims[source->at] * source->factor;
    case PAC_STRIDE: return x->dims[x->ndim + source->at] * source->factor;
    case PAC_SIZE: return x->size;
    case PAC_QUOTIENT: return x->size / source->at < source->factor ? x->size / source->at : source->factor;
    case PAC_CONSTANT:
    case PAC_NUMBER: break;
    }
    return source->at;
}

/* -1: it is none that memory has. */
static int64_t product(const run *r, const pac_product *p) {
    int64_t value = 1;
    for (int k = 0; k < p->count; ++k)
        if (__builtin_mul_overflow(value, number(r, &p->source[k]), &value)) return -1;
    return value;
}

/* ---- what must hold --------------------------------------------------------------------------------------------- */

static int source_fits(const pac_source *s, const pac_plan *plan, const pac_call *call) {
    if (s->kind == PAC_NUMBER) return s->index < call->numbers + plan->computed;
    if (s->kind == PAC_DIM || s->kind == PAC_STRIDE) return s->at < call->operand[s->index].ndim;
    return 1;
}

static int product_fits(const pac_product *p, const pac_plan *plan, const pac_call *call) {
    for (int k = 0; k < p->count; ++k)
        if (!source_fits(&p->source[k], plan, call)) return 0;
    return 1;
}

static int result_fits(const pac_result *r, const pac_plan *plan, const pac_call *call) {
    const int ndim = (int)(r->key >> 8 & 0xFF), dims = r->kind != PAC_RESULT_ARRAY ? 0 : r->ordered ? ndim : 2 * ndim;
    for (int k = 0; k < dims; ++k)
        if (!source_fits(&r->dims[k], plan, call)) return 0;
    for (int k = 0; k < r->count; ++k)
        if (!result_fits(&r->item[k], plan, call)) return 0;
    return 1;
}

int pac_plan_fits(PyObject *self, const pac_call *call) {
    const pac_plan *plan = (pac_plan *)self;
    int fits = plan->operands == call->operands && call->numbers + plan->computed <= PAC_CALL_NUMBERS &&
               result_fits(&plan->result, plan, call);
    for (int k = 0; k < plan->buffers && fits; ++k) fits = product_fits(&plan->buffer[k], plan, call);
    for (int k = 0; k < plan->conditions && fits; ++k) fits = product_fits(&plan->condition[k].product, plan, call);
    for (int k = 0; k < plan->steps && fits; ++k) {
        const pac_step *step = &plan->step[k];
        fits = product_fits(&step->size, plan, call) && source_fits(&step->elements, plan, call);
        for (int n = 0; n < step->fills && fits; ++n) fits = source_fits(&step->fill[n].source, plan, call);
    }
    return fits;
}

int pac_plan_of_types(PyObject *plan) { return ((pac_plan *)plan)->of_types; }

int pac_plan_computes(PyObject *plan) { return ((pac_plan *)plan)->compute != NULL; }

static int apart(const pac_buffer *a, const pac_buffer *b) {
    if (!a->owner && !b->owner) return 1;
    return a->ptr + (uintptr_t)a->nbytes <= b->ptr || b->ptr + (uintptr_t)b->nbytes <= a->ptr;
}

/* Whether what is written is no other operand's memory, but for operands of one buffer, of which a key of layouts says
   how they overlap: buffers of other libraries may. */
static int may_write(const pac_plan *plan, const pac_call *call, int k) {
    const pac_buffer *written = call->operand[k].buffer;
    for (int j = 0; j < call->operands; ++j) {
        if (j == k) continue;
        const pac_buffer *other = call->operand[j].buffer;
        if (other == written ? plan->of_types : !apart(other, written)) return 0;
    }
    return 1;
}

static int holds(const run *r) {
    const pac_plan *plan = r->plan;
    for (int k = 0; k < plan->operands && plan->written; ++k)
        if (plan->written >> k & 1 && !may_write(plan, r->call, k)) return 0;
    for (int k = 0; k < plan->conditions; ++k) {
        const pac_condition *c = &plan->condition[k];
        if (c->equal) {
            if (number(r, &c->product.source[0]) != number(r, &c->product.source[1])) return 0;
            continue;
        }
        const int64_t value = product(r, &c->product);
        if (value < c->low || value > c->high) return 0;
    }
    int64_t slots[2]; /* numbers are packed before anything is done */
    for (int k = 0; k < plan->steps && r->call->numbers; ++k)
        for (int n = 0; n < plan->step[k].fills; ++n) {
            const pac_source *source = &plan->step[k].fill[n].source;
            if (source->kind == PAC_NUMBER && !pac_pack_number(r->call->number[source->index], (int)source->at, slots))
                return 0;
        }
    return 1;
}

/* Adds the numbers that the plan computes to the call's, borrowed from what is returned. Py_NotImplemented: the
   function refuses these numbers, and the general way says why. NULL with an exception. */
static PyObject *computed_numbers(const pac_plan *plan, pac_call *call) {
    PyObject *made = PyObject_Vectorcall(plan->compute, call->number, (size_t)call->numbers, NULL);
    if (!made) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (!PyTuple_Check(made) || PyTuple_GET_SIZE(made) != plan->computed) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of %d numbers, got %R", plan->computed, made);
        Py_CLEAR(made);
        return NULL;
    }
    for (int k = 0; k < plan->computed; ++k) call->number[call->numbers++] = PyTuple_GET_ITEM(made, k);
    return made;
}

int pac_plan_holds(PyObject *self, pac_call *call) {
    const run r = {.plan = (pac_plan *)self, .call = call};
    if (!r.plan->compute) return holds(&r);
    const int numbers = call->numbers;
    PyObject *more = computed_numbers(r.plan, call);
    const int found = more && more != Py_NotImplemented && holds(&r);
    Py_XDECREF(more);
    call->numbers = numbers;
    return found;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static int launch(const run *r, const pac_step *step) {
    const Py_ssize_t count = pac_bound_slots(step->launch);
    int64_t small[SMALL], *slots = count <= SMALL ? small : PyMem_Malloc((size_t)count * sizeof *slots);
    if (!slots) return PyErr_NoMemory() != NULL;
    pac_bound_copy(step->launch, slots);
    for (int k = 0; k < step->fills; ++k) {
        const pac_source *source = &step->fill[k].source;
        int64_t *slot = &slots[step->fill[k].slot];
        if (source->kind == PAC_NUMBER) pac_pack_number(r->call->number[source->index], (int)source->at, slot);
        else *slot = number(r, source);
    }
    const int done = pac_bound_run(step->launch, slots, step->size.count ? product(r, &step->size) : -1);
    if (slots != small) PyMem_Free(slots);
    return done;
}

/* Tells the owners of these operands. 0 with an exception. */
static int tell(const run *r, uint32_t operands) {
    for (int k = 0; operands; ++k, operands >>= 1)
        if (operands & 1 && !pac_tell_owner(r->call->operand[k].buffer)) return 0;
    return 1;
}

static int check(const run *r, const pac_step *step) {
    PyObject *elements = PyTuple_New(step->count);
    const char *at = (const char *)(uintptr_t)number(r, &step->elements);
    pac_this_thread.host_access = 1;
    for (int k = 0; elements && k < step->count; ++k) {
        PyObject *x = pac_load_element(at + (Py_ssize_t)k * pac_dtypes[step->code].itemsize, step->code);
        if (!x) Py_CLEAR(elements);
        else PyTuple_SET_ITEM(elements, k, x);
    }
    PyObject *done = elements ? PyObject_CallObject(step->check, elements) : NULL;
    Py_XDECREF(elements);
    Py_XDECREF(done);
    return done != NULL;
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

static PyObject *array(const run *r, const pac_result *x) {
    const int ndim = (int)(x->key >> 8 & 0xFF);
    pac_array *a = pac_array_new(pac_ndarray_type, x->key);
    if (!a) return NULL;
    int64_t step = PAC_ITEMSIZE(a);
    a->size = 1;
    for (int axis = ndim - 1; axis >= 0; --axis) {
        const int64_t n = number(r, &x->dims[axis]);
        a->dims[axis] = n;
        a->dims[ndim + axis] = x->ordered ? step : number(r, &x->dims[ndim + axis]);
        a->size *= n;
        step *= n ? n : 1;
    }
    pac_set_buffer(a, (pac_buffer *)Py_NewRef(r->buffer[x->index]));
    if (!x->is_view) return (PyObject *)a;
    pac_array *view = pac_array_view(a, x->view_offset, x->view_ndim, x->view_dims, x->view_dims + x->view_ndim,
                                     x->view_code, x->as_run);
    Py_DECREF(a);
    return (PyObject *)view;
}

static PyObject *result(const run *r, const pac_result *x);

static PyObject *items(const run *r, const pac_result *x) {
    const int is_list = x->kind == PAC_RESULT_LIST;
    PyObject *made = is_list ? PyList_New(x->count) : PyTuple_New(x->count);
    for (int k = 0; made && k < x->count; ++k) {
        PyObject *item = result(r, &x->item[k]);
        if (!item) Py_CLEAR(made);
        else if (is_list) PyList_SET_ITEM(made, k, item);
        else PyTuple_SET_ITEM(made, k, item);
    }
    if (made && x->class) Py_SETREF(made, PyObject_CallObject(x->class, made));
    return made;
}

static PyObject *result(const run *r, const pac_result *x) {
    switch (x->kind) {
    case PAC_RESULT_NONE: break;
    case PAC_RESULT_OPERAND: return Py_NewRef(r->call->operand[x->index].array);
    case PAC_RESULT_LIST:
    case PAC_RESULT_TUPLE: return items(r, x);
    case PAC_RESULT_ARRAY: return array(r, x);
    }
    Py_RETURN_NONE;
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

static PyObject *done(run *r) {
    const pac_plan *plan = r->plan;
    PyObject *device = r->call->operand[0].buffer->device;
    for (; r->allocated < plan->buffers; ++r->allocated) {
        const int64_t nbytes = product(r, &plan->buffer[r->allocated]);
        if ((r->buffer[r->allocated] = pac_buffer_allocate(device, nbytes))) continue;
        if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL;
        PyErr_Clear(); /* nothing is launched yet, and the function may have a way that takes less */
        Py_RETURN_NOTIMPLEMENTED;
    }
    for (int k = 0; k < plan->steps; ++k) {
        const pac_step *step = &plan->step[k];
        if (step->first && !tell(r, step->first)) return NULL;
        if (!(step->launch ? launch(r, step) : check(r, step))) return NULL;
    }
    return result(r, &plan->result);
}

static PyObject *done_if_it_holds(run *r) {
    if (!holds(r)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *made = done(r);
    for (int k = 0; k < r->allocated; ++k) Py_DECREF(r->buffer[k]);
    return made;
}

/* Python runs in allocations, checks, owners that are told, while numbers are computed and while a launch is long: all
   that is used has a reference, what the call has from the caller. */
PyObject *pac_plan_run(PyObject *self, pac_call *call) {
    run r = {.plan = (pac_plan *)self, .call = call};
    const int numbers = call->numbers;
    Py_INCREF(self);
    PyObject *more = r.plan->compute ? computed_numbers(r.plan, call) : NULL;
    PyObject *made = r.plan->compute && (!more || more == Py_NotImplemented) ? Py_XNewRef(more) : done_if_it_holds(&r);
    Py_XDECREF(more);
    call->numbers = numbers;
    Py_DECREF(self);
    return made;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

typedef struct {
    visitproc visit;
    void *arg;
} visitor;

static int visit_reference(PyObject **place, void *arg) {
    const visitor *v = arg;
    return v->visit(*place, v->arg);
}

static int drop_reference(PyObject **place, void *Py_UNUSED(arg)) {
    Py_CLEAR(*place);
    return 0;
}

static int plan_traverse(PyObject *self, visitproc visit, void *arg) {
    visitor v = {visit, arg};
    Py_VISIT(Py_TYPE(self));
    return pac_plan_references((pac_plan *)self, visit_reference, &v);
}

static void plan_dealloc(PyObject *self) {
    pac_plan *plan = (pac_plan *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    pac_plan_references(plan, drop_reference, NULL);
    for (void **block = plan->blocks, **next; block; block = next) {
        next = *block;
        PyMem_Free(block);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *plan = type->tp_alloc(type, 0);
    if (plan && !pac_plan_read((pac_plan *)plan, args)) Py_CLEAR(plan);
    return plan;
}

static PyType_Slot plan_slots[] = {
    {Py_tp_new, plan_new},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_traverse, plan_traverse},
    {Py_tp_doc,
     "What a warm call does: CallPlan(operands, buffers, steps, result, written, conditions, numbers=None)."},
    {0},
};
static PyType_Spec plan_spec = {"pyarray._core.CallPlan", sizeof(pac_plan), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, plan_slots};

int pac_add_plan_type(PyObject *module) {
    pac_plan_type = (PyTypeObject *)PyType_FromSpec(&plan_spec);
    return pac_plan_type ? PyModule_AddType(module, pac_plan_type) : -1;
}

/* Functions and methods that C does where it can: `QuickFunction` (function.c) calls one of these before the general
   function in Python. Each gives Py_NotImplemented, before anything has changed, for what it leaves to that function:
   rare arguments, and all that is wrong. NULL with an exception otherwise. */
#pragma once
#include "core.h"

typedef PyObject *(*pac_quick)(PyObject *const *args, Py_ssize_t count, PyObject *names);

#define PAC_QUICK(name) PyObject *pac_quick_##name(PyObject *const *args, Py_ssize_t count, PyObject *names)

/* Keywords among the arguments: they follow the `count` positional ones. */
static inline Py_ssize_t pac_keywords(PyObject *names) { return names ? PyTuple_GET_SIZE(names) : 0; }

/* The first argument, where it is an array, there are `fewest` to `most` arguments, and none has a name; else NULL. */
static inline pac_array *pac_first_array(PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t fewest,
                                         Py_ssize_t most) {
    if (count < fewest || count > most || pac_keywords(names) || !PAC_IS_ARRAY(args[0])) return NULL;
    return (pac_array *)args[0];
}

/* Integers from several arguments, or from one that is a tuple or a list, PAC_MAX_NDIM at most. Their number; -1: other
   arguments. */
int pac_read_integers(PyObject *const *items, Py_ssize_t count, int64_t *numbers);

/* The code of what names a dtype; -1: it needs `asdtype`. */
int pac_find_code(PyObject *dtype);

/* The device that `spec` names, a new reference, and its code; None: the default one. NULL, without an exception: the
   general way says what is wrong. */
PyObject *pac_find_device(PyObject *spec, uint64_t *code);

/* A fresh copy in C order with elements of another dtype, or Py_NotImplemented. */
PyObject *pac_copy(pac_array *a, int code);

/* A view of a fresh copy, in a shape of as many elements, or Py_NotImplemented. */
PyObject *pac_reshaped_copy(pac_array *a, int ndim, const int64_t *shape);

/* Fills a fresh array with a number. 1: done; 0: the number isn't one of its type, or others are to see the launch; -1
   with an exception. */
int pac_fill(pac_array *out, PyObject *number);

/* views.c */
PAC_QUICK(reshape);
PAC_QUICK(reshape_method);
PAC_QUICK(transpose);
PAC_QUICK(transpose_method);
PAC_QUICK(permute_dims);
PAC_QUICK(reversed_axes);
PAC_QUICK(matrix_transpose);
PAC_QUICK(swapaxes);
PAC_QUICK(squeeze);
PAC_QUICK(expand_dims);
PAC_QUICK(ravel);

/* copies.c */
PAC_QUICK(copy);
PAC_QUICK(flatten);
PAC_QUICK(astype);

/* creation.c */
PAC_QUICK(new);
PAC_QUICK(empty);
PAC_QUICK(zeros);
PAC_QUICK(ones);
PAC_QUICK(full);
PAC_QUICK(empty_like);
PAC_QUICK(zeros_like);
PAC_QUICK(ones_like);
PAC_QUICK(full_like);

/* sequences.c */
PAC_QUICK(asarray);
PAC_QUICK(arange);

/* numbers.c */
PAC_QUICK(float);
PAC_QUICK(int);
PAC_QUICK(complex);
PAC_QUICK(index);
PAC_QUICK(bool);
PAC_QUICK(item);
PAC_QUICK(tolist);

/* rows.c */
PAC_QUICK(rows);

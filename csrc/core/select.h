/* What selections on the host share: which elements a key names, and how they are moved. */
#pragma once
#include "core.h"

/* Up to so many elements of a result, a mask or an index, a loop of one thread is taken: it needs 1 to 2 ns for each,
   and a launch by way of Python, on two cores, 20 us and half as long for each. Kernels fill the elements of a mask ten
   times as fast, by masked vectors. Positions fit 32 bits, whose divisions are fast. */
#define PAC_SELECT_LIMIT ((int64_t)1 << 15)
#define PAC_SELECT_FILL ((int64_t)1 << 14)
#define PAC_SELECT_NDIM 8    /* axes of an array that is indexed */
#define PAC_SELECT_ARRAYS 4  /* index arrays of a key */
#define PAC_SELECT_MIDDLE 4  /* axes of an index array */
#define PAC_SELECT_AXES (PAC_SELECT_NDIM + PAC_SELECT_MIDDLE)
#define PAC_SELECT_FEW 256   /* offsets that need no memory of their own */

/* The result's axes are those before the index arrays', the index arrays' own (the middle), and those after. */
typedef struct pac_selection {
    uintptr_t at; /* where the axes before and after, and the offsets, count from */
    int before, middle, ndim;
    int64_t shape[PAC_SELECT_AXES];   /* the result's */
    int64_t strides[PAC_SELECT_AXES]; /* the array's, in bytes; those of the middle stand for nothing */
    int64_t count;                    /* elements of the middle */
    int64_t *offsets;                 /* bytes, one for each of them: `few` or memory of its own */
    int64_t few[PAC_SELECT_FEW];
} pac_selection;

/* An axis that two operands share, with their strides in bytes and where a walk stands. */
typedef struct pac_axis {
    int64_t size, here, there, at;
} pac_axis;

/* Drops axes of size 1 and merges neighbours that both operands walk alike. Gives the number of axes left. */
int pac_merge_axes(pac_axis *axes, int n);

/* Moves to the next place, the last axis fastest. 0 after the last place, when all is back at the first. */
static inline int pac_next_place(pac_axis *axes, int n, const char **here, const char **there)
{
    while (n--) {
        pac_axis *x = axes + n;
        *here += x->here, *there += x->there;
        if (++x->at < x->size) return 1;
        *here -= x->here * x->size, *there -= x->there * x->size;
        x->at = 0;
    }
    return 0;
}

/* The number of elements; -1 for more than the limit. */
int64_t pac_few_elements(int ndim, const int64_t *shape);

/* Whether two arrays may share bytes; gaps between strided elements count as covered. */
int pac_may_overlap(const pac_array *a, const pac_array *b);

/* One byte for each element in C order: 0 for zeros, not 0 for others. They are the array's own where its bytes say it,
   else written to `space`, or to `*made`, which is to be freed, if they are more than PAC_SELECT_SPACE. NULL with an
   exception. */
#define PAC_SELECT_SPACE 2048
const uint8_t *pac_truths(const pac_array *a, uint8_t *space, uint8_t **made);

/* How many of n bytes aren't 0, and their positions, of which there were `count`. 0: there are fewer now, since others
   changed them meanwhile. */
int64_t pac_count_true(const uint8_t *bytes, int64_t n);
int pac_list_true(const uint8_t *bytes, int64_t n, int64_t count, int64_t *positions);

/* The elements of `from` (1, 2, 4, 8 or 16 bytes each) whose mask of n bytes isn't 0, of which there were `count`. 0:
   there are fewer now. */
int pac_compress(char *to, const char *from, const uint8_t *mask, int64_t n, int64_t count, int itemsize);

/* What `a[key]` selects; `writes`: it is to be written, so that no array of the key may share its memory. 1: found,
   pac_end_selection is due. 0: the key needs the general way; -1: an exception. */
int pac_find_selection(pac_selection *s, pac_array *a, PyObject *key, int writes);
void pac_end_selection(pac_selection *s);

/* Copies the selected elements to memory at `other`, or from there if `into`. Along the result's axes it has the
   strides `steps`, but along the whole middle `step`. There is at least one element, and the memories don't overlap. */
void pac_move_selected(const pac_selection *s, int itemsize, char *other, const int64_t *steps, int64_t step, int into);

/* `a[key]` and `a[key] = value` (an array that doesn't overlap `a`, or the bytes of a number) in one pass, for rows and
   an index array without gaps. Py_NotImplemented and 0: another key, which pac_find_selection may take. */
PyObject *pac_take_rows(pac_array *a, PyObject *key);
int pac_put_rows(pac_array *a, PyObject *key, const pac_array *value, const char *number);

/* Elementwise calls: operands are broadcast, axes merged, arguments packed and a compiled kernel launched. */
#pragma once
#include "core.h"

enum { PAC_MAP_OPERANDS = 3, PAC_MAP_NDIM = 8, PAC_MAP_SLOTS = (PAC_MAP_OPERANDS + 1) * (1 + 2 * PAC_MAP_NDIM) };

/* An array as a kernel sees it: the axes that it isn't broadcast along, merged with their neighbours. */
typedef struct {
    int ndim, strided;
    unsigned axes; /* a bit for each axis of the output that it has; 0 for all operands of 0 axes */
    int64_t shape[PAC_MAP_NDIM], strides[PAC_MAP_NDIM];
} pac_map_view;

/* What a launch depends on beyond types. Views are the output's, then each operand's (unused for numbers). */
typedef struct {
    int ndim, tiled;
    int64_t shape[PAC_MAP_NDIM]; /* of the output, merged */
    pac_map_view views[PAC_MAP_OPERANDS + 1];
} pac_map_layout;

/* The shape that the arrays broadcast to; -1 if they don't, if they have more than PAC_MAP_NDIM axes, or if the result
   is larger than any memory. */
int pac_map_broadcast(int count, pac_array *const *arrays, int64_t *shape);

/* Strides of a new result: in the common memory order of the arrays that have its shape, else in C order. */
void pac_map_result_strides(int count, pac_array *const *arrays, int ndim, const int64_t *shape, int itemsize,
                            int64_t *strides);

/* The layout of a launch: `arrays[0]` is the output, the others are operands that broadcast to it; NULL is a number. */
void pac_map_merge(int count, pac_array *const *arrays, pac_map_layout *layout);

/* All of a layout but sizes: what kernels are made for. */
uint64_t pac_map_layout_key(int count, pac_array *const *arrays, const pac_map_layout *layout);

/* The Map of copies and assignments. */
extern PyObject *pac_copy_map;

/* Whether two arrays of one device have bytes in common. It may say so of arrays whose elements lie between each
   other's; not of columns of one matrix. */
int pac_overlap(const pac_array *a, const pac_array *b);

/* Whether writing `out` changes elements of `x` that are read later: it has bytes of it, in another layout. */
int pac_map_aliases(const pac_array *x, const pac_array *out);

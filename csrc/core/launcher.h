/* Launches of variants: arguments as operands and numbers, the launcher that packs them, the table of launchers by the
   types of arguments, and what makes the key. */
#pragma once
#include "cache.h"
#include "foreign.h"
#include "launch.h"

/* ---- arguments (arguments.c) ------------------------------------------------------------------------------------- */

/* An array among the arguments of a launch, while its owner is held: of ours, or `foreign`. `shape` is NULL for what is
   no array. */
typedef struct {
    uint64_t key; /* type key, without promises about sizes */
    uintptr_t ptr;
    int64_t size;
    const int64_t *shape, *strides; /* strides in bytes */
    pac_array *array;
    const pac_foreign *foreign;
} pac_operand;

/* Reads an array. 0: it is none. */
int pac_operand_read(PyObject *x, pac_operand *operand);

/* Reads an array of another library into `view`, which the operand refers to, and which is to be released. As
   pac_foreign_read. */
int pac_operand_read_foreign(PyObject *x, pac_foreign *view, pac_operand *operand);

/* Whether a parameter of the dtype with that code takes numbers of this class; of others `check_number`
   (pyarray/jit/signature.py) says what is wrong. */
int pac_takes_number(PyObject *x, int code);

/* Packs whatever Python converts to a number of the dtype. The slots used, 1 or 2; 0 with a TypeError or
   OverflowError, or what the conversion raised. */
int pac_pack_argument(PyObject *x, int code, int64_t *slots);

/* The word that says the class of a number without an annotation; 0: it is no number. */
uint64_t pac_number_word(PyObject *x);

/* ---- iteration counts (extents.c) ------------------------------------------------------------------------------- */

/* Whether a product of sizes may exceed 2**63 - 1. `program` is what `lang.loop_extents.encoded` gives. */
int pac_extents_may_overflow(const int64_t *program, Py_ssize_t count, const int64_t *slots);

/* ---- the launcher of a variant (launcher.c) --------------------------------------------------------------------- */

typedef struct pac_launcher pac_launcher;
extern PyTypeObject *pac_launcher_type;

/* Packs and launches; `operands` are those of the leaves that are arrays. A failure record or None; NULL with an
   exception, TypeError or OverflowError for what can't be packed: nothing was launched then. */
PyObject *pac_launcher_run(pac_launcher *launcher, PyObject *const *leaves, pac_operand *operands);

/* ---- launchers by key (variant_table.c) ------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    pac_cache launchers;
} pac_variant_table;

extern PyTypeObject *pac_variant_table_type;

/* The key as a Python object. NULL with an exception. */
PyObject *pac_key_object(const pac_key *key);

/* The launcher of a key, a new reference; NULL: there is none, or there is an exception. */
PyObject *pac_variant_find(pac_variant_table *table, const pac_key *key);

/* ---- flattened arguments (treedef.c) ---------------------------------------------------------------------------- */

/* How a leaf is part of the key. */
enum pac_leaf_kind {
    PAC_LEAF_ARRAY,    /* type key */
    PAC_LEAF_NUMBER,   /* annotated: it is a value, and no part of the key */
    PAC_LEAF_TYPED,    /* an array's type key, or the class of a number */
    PAC_LEAF_CONSTANT, /* compiled in: its value */
    PAC_LEAF_UNREAD,   /* its class alone is looked at */
    PAC_LEAF_LAYOUT,   /* an array: type key, alignment up to 16, strides, which axes have steps */
    PAC_LEAF_SHAPE,    /* the same, and the sizes */
    PAC_LEAF_KINDS
};

typedef struct {
    int kind, code; /* code: dtype of PAC_LEAF_NUMBER */
    int ndim;
    int64_t *sizes; /* that the annotation declares, by axis, -1 for any; NULL: none */
} pac_leaf;

typedef struct pac_node pac_node;

typedef struct {
    PyObject_HEAD
    int items, nodes, leaves, words; /* words: the most in a key */
    pac_node *node; /* in the order in which they are read */
    pac_leaf *leaf;
    PyObject *static_key;
    uint64_t number; /* 0: each argument is what the signature says; else of this structure alone */
} pac_treedef;

extern PyTypeObject *pac_treedef_type;

/* Reads each field once: new references to the leaves. 1; 0: the arguments have another structure; -1 with an
   exception. */
int pac_treedef_read(const pac_treedef *treedef, PyObject *const *arguments, PyObject **leaves);

/* The key of leaves, and their operands. Other libraries' arrays are read into `views`, one for each leaf, unless that
   is NULL. 1; 0: they have none; -1 with an exception. The caller releases the key's objects, one for each leaf at
   most, and the views that operands refer to, which are cleared before the call. */
int pac_treedef_key(const pac_treedef *treedef, int checked, PyObject *const *leaves, pac_operand *operands,
                    pac_foreign *views, pac_key *key);

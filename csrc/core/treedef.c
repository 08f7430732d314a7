/* TreeDef: how arguments of one pytree are flattened to leaves, and what of these a variant is looked up by. */
#include "launcher.h"

/* A leaf, or a structure whose parts come behind it. */
struct pac_node {
    PyTypeObject *kind; /* the class it must have; NULL: any */
    PyObject *names;    /* of fields that are read; NULL: a leaf, or a plain tuple */
    int parts;          /* of a structure; -1: a leaf */
};

PyTypeObject *pac_treedef_type;
enum { LAYOUT_NDIM = 8 }; /* arrays of more axes have no key with a layout */
static uint64_t structures; /* that were numbered so far */

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const pac_node *node;
    PyObject **leaves;
    int count;
} reader_type;

/* Whether an exception says that the arguments are of another structure. It is cleared then. */
static int is_other_structure(void) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_LookupError) &&
        !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError))
        return 0;
    PyErr_Clear();
    return 1;
}

/* Reads a value that comes next, whose reference is taken over. 1, 0 or -1 as pac_treedef_read. */
static int read_value(reader_type *reader, PyObject *value) {
    const pac_node *node = reader->node++;
    if (node->kind && Py_TYPE(value) != node->kind) {
        Py_DECREF(value);
        return 0;
    }
    if (node->parts < 0) {
        reader->leaves[reader->count++] = value;
        return 1;
    }
    int done = node->names || PyTuple_GET_SIZE(value) == node->parts;
    for (int k = 0; k < node->parts && done > 0; ++k) {
        PyObject *part = node->names ? PyObject_GetAttr(value, PyTuple_GET_ITEM(node->names, k))
                                     : Py_NewRef(PyTuple_GET_ITEM(value, k));
        if (part) done = read_value(reader, part);
        else done = is_other_structure() ? 0 : -1;
    }
    Py_DECREF(value);
    return done;
}

int pac_treedef_read(const pac_treedef *treedef, PyObject *const *arguments, PyObject **leaves) {
    reader_type reader = {treedef->node, leaves, 0};
    int done = 1;
    for (int k = 0; k < treedef->items && done > 0; ++k) done = read_value(&reader, Py_NewRef(arguments[k]));
    for (; done <= 0 && reader.count; --reader.count) Py_DECREF(leaves[reader.count - 1]);
    return done;
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* Adds an object, whose reference is taken over, and writes its hash. 0 with an exception. */
static int add_object(pac_key *key, PyObject *object, uint64_t *word) {
    if (!object) return 0;
    key->object[key->objects++] = object;
    const Py_hash_t hash = PyObject_Hash(object);
    *word = (uint64_t)hash;
    return hash != -1;
}

/* A value that is compiled in: its class and itself in two words, or an object (`static_key`). */
static int add_constant(const pac_treedef *treedef, PyObject *value, pac_key *key) {
    enum { OBJECT, INTEGER, BOOL, NONE };
    uint64_t *words = key->word + key->words;
    key->words += 2;
    words[0] = OBJECT;
    words[1] = 0;
    if (value == Py_None) words[0] = NONE;
    else if (PyBool_Check(value)) {
        words[0] = BOOL;
        words[1] = value == Py_True;
    } else if (PyLong_CheckExact(value)) {
        int overflow;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow) {
            words[0] = INTEGER;
            words[1] = (uint64_t)number;
        }
    }
    return words[0] != OBJECT || add_object(key, PyObject_CallOneArg(treedef->static_key, value), &words[1]);
}

static int add_array(const pac_operand *operand, pac_key *key) {
    key->word[key->words++] = operand->key;
    if (!operand->array || !operand->array->marks) return 1;
    return add_object(key, Py_NewRef(operand->array->marks), &key->word[key->words++]);
}

/* What the tuner's choice depends on beside the type. 0: there are too many axes for a key. */
static int add_layout(const pac_operand *operand, int with_shape, pac_key *key) {
    const int ndim = (int)(operand->key >> 8 & 0xFF);
    if (ndim > LAYOUT_NDIM) return 0;
    uint64_t with_steps = 0;
    for (int axis = 0; axis < ndim; ++axis) with_steps |= (uint64_t)(operand->shape[axis] > 1) << axis;
    key->word[key->words++] = (operand->ptr & 15) | with_steps << 8;
    for (int axis = 0; axis < ndim; ++axis) key->word[key->words++] = (uint64_t)operand->strides[axis];
    for (int axis = 0; axis < ndim && with_shape; ++axis) key->word[key->words++] = (uint64_t)operand->shape[axis];
    return 1;
}

/* Whether an array has the sizes that its annotation declares: part of its type, which no word of the key says. */
static int has_sizes(const pac_leaf *leaf, const pac_operand *operand) {
    if (!leaf->sizes) return 1;
    if ((int)(operand->key >> 8 & 0xFF) != leaf->ndim) return 0;
    for (int axis = 0; axis < leaf->ndim; ++axis)
        if (leaf->sizes[axis] >= 0 && leaf->sizes[axis] != operand->shape[axis]) return 0;
    return 1;
}

static int words_of(int kind) {
    return kind == PAC_LEAF_LAYOUT ? 3 + LAYOUT_NDIM : kind == PAC_LEAF_SHAPE ? 3 + 2 * LAYOUT_NDIM : 2;
}

/* The word of an array's type, of ours or of another library's. 1, 0 or -1 as pac_treedef_key. */
static int add_any_array(PyObject *leaf, pac_operand *operand, pac_foreign *view, pac_key *key) {
    int read = pac_operand_read(leaf, operand);
    if (!read && view) read = pac_operand_read_foreign(leaf, view, operand);
    return read != 1 || add_array(operand, key) ? read : is_other_structure() ? 0 : -1;
}

int pac_treedef_key(const pac_treedef *treedef, int checked, PyObject *const *leaves, pac_operand *operands,
                    pac_foreign *views, pac_key *key) {
    key->word[0] = treedef->number << 1 | (uint64_t)checked;
    key->words = 1;
    for (int k = 0; k < treedef->leaves; ++k) {
        const int kind = treedef->leaf[k].kind;
        int added = 1, read;
        uint64_t word = 0;
        operands[k].shape = NULL;
        if (kind == PAC_LEAF_CONSTANT) added = add_constant(treedef, leaves[k], key);
        else if (kind != PAC_LEAF_NUMBER && kind != PAC_LEAF_UNREAD) {
            const int with_layout = kind == PAC_LEAF_LAYOUT || kind == PAC_LEAF_SHAPE;
            if (kind == PAC_LEAF_TYPED) word = pac_number_word(leaves[k]);
            if (word) key->word[key->words++] = word;
            else if ((read = add_any_array(leaves[k], &operands[k], views ? &views[k] : NULL, key)) != 1) return read;
            if (!word && !has_sizes(&treedef->leaf[k], &operands[k])) return 0;
            if (added && with_layout && !add_layout(&operands[k], kind == PAC_LEAF_SHAPE, key)) return 0;
        }
        if (!added) return is_other_structure() ? 0 : -1;
    }
    key->hash = 0;
    for (int k = 0; k < key->words; ++k) key->hash = pac_mixed(key->hash, key->word[k]);
    return 1;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

/* Counts the nodes of an item: (None or class, names, items), or (None or class, kind, code) and, where sizes are
   declared, a tuple of them. -1 with an exception. */
static int count_nodes(PyObject *item) {
    const Py_ssize_t length = PyTuple_Check(item) ? PyTuple_GET_SIZE(item) : 0;
    if (length != 3 && !(length == 4 && PyTuple_Check(PyTuple_GET_ITEM(item, 3)))) {
        PyErr_Format(PyExc_TypeError, "expected a leaf or a structure, got %R", item);
        return -1;
    }
    PyObject *parts = PyTuple_GET_ITEM(item, 2);
    int count = 1;
    for (Py_ssize_t k = 0; PyTuple_Check(parts) && k < PyTuple_GET_SIZE(parts); ++k) {
        const int inner = count_nodes(PyTuple_GET_ITEM(parts, k));
        if (inner < 0) return -1;
        count += inner;
    }
    return count;
}

static int add_sizes(pac_leaf *leaf, PyObject *sizes) {
    const Py_ssize_t ndim = PyTuple_GET_SIZE(sizes);
    leaf->sizes = PyMem_Calloc((size_t)ndim + 1, sizeof *leaf->sizes);
    if (!leaf->sizes) return PyErr_NoMemory() != NULL;
    leaf->ndim = (int)ndim;
    for (Py_ssize_t axis = 0; axis < ndim; ++axis)
        leaf->sizes[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, axis));
    return !PyErr_Occurred();
}

static int add_leaf(pac_treedef *self, PyObject *item) {
    pac_leaf *leaf = &self->leaf[self->leaves++];
    leaf->kind = (int)PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
    leaf->code = (int)PyLong_AsLong(PyTuple_GET_ITEM(item, 2));
    if (PyErr_Occurred()) return 0;
    if (PyTuple_GET_SIZE(item) == 4 && !add_sizes(leaf, PyTuple_GET_ITEM(item, 3))) return 0;
    self->words += words_of(leaf->kind);
    if (leaf->kind >= 0 && leaf->kind < PAC_LEAF_KINDS && leaf->code >= 0 && leaf->code < PAC_CODES) return 1;
    PyErr_Format(PyExc_ValueError, "%R is no leaf", item);
    return 0;
}

static int add_node(pac_treedef *self, PyObject *item) {
    PyObject *kind = PyTuple_GET_ITEM(item, 0), *names = PyTuple_GET_ITEM(item, 1), *parts = PyTuple_GET_ITEM(item, 2);
    pac_node *node = &self->node[self->nodes++];
    if (kind != Py_None && !PyType_Check(kind)) {
        PyErr_Format(PyExc_TypeError, "expected a class, got %R", kind);
        return 0;
    }
    node->kind = kind == Py_None ? NULL : (PyTypeObject *)Py_NewRef(kind);
    node->parts = -1;
    if (!PyTuple_Check(parts)) return add_leaf(self, item);
    node->parts = (int)PyTuple_GET_SIZE(parts);
    if (names != Py_None) node->names = Py_NewRef(names);
    else if (node->kind != &PyTuple_Type) node->parts = 0;
    int added = names == Py_None || (PyTuple_Check(names) && PyTuple_GET_SIZE(names) == node->parts);
    if (!added) PyErr_Format(PyExc_TypeError, "expected a name for each of %d parts, got %R", node->parts, names);
    for (int k = 0; k < node->parts && added; ++k) added = add_node(self, PyTuple_GET_ITEM(parts, k));
    return added;
}

/* TreeDef(items, static_key, is_plain) */
static PyObject *treedef_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *items, *static_key;
    int is_plain, nodes = 0;
    if (!PyArg_ParseTuple(args, "O!Op", &PyTuple_Type, &items, &static_key, &is_plain)) return NULL;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(items); ++k) {
        const int count = count_nodes(PyTuple_GET_ITEM(items, k));
        if (count < 0) return NULL;
        nodes += count;
    }
    pac_treedef *self = (pac_treedef *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->items = (int)PyTuple_GET_SIZE(items);
    self->words = 1;
    self->number = is_plain ? 0 : ++structures;
    self->static_key = Py_NewRef(static_key);
    self->node = PyMem_Calloc((size_t)nodes + 1, sizeof *self->node);
    self->leaf = PyMem_Calloc((size_t)nodes + 1, sizeof *self->leaf);
    int added = self->node && self->leaf;
    if (!added) PyErr_NoMemory();
    for (int k = 0; k < self->items && added; ++k) added = add_node(self, PyTuple_GET_ITEM(items, k));
    if (!added) Py_CLEAR(self);
    return (PyObject *)self;
}

/* key(checked, leaves): what a variant is looked up by. */
static PyObject *treedef_key(PyObject *object, PyObject *args) {
    const pac_treedef *self = (pac_treedef *)object;
    PyObject *leaves;
    int checked;
    if (!PyArg_ParseTuple(args, "pO!", &checked, &PyTuple_Type, &leaves)) return NULL;
    if (PyTuple_GET_SIZE(leaves) != self->leaves) {
        PyErr_Format(PyExc_TypeError, "expected %d leaves, got %zd", self->leaves, PyTuple_GET_SIZE(leaves));
        return NULL;
    }
    pac_operand *operands = PyMem_Malloc(((size_t)self->leaves + 1) * sizeof *operands);
    pac_key key = {.word = PyMem_Malloc((size_t)self->words * sizeof *key.word),
                   .object = PyMem_Malloc(((size_t)self->leaves + 1) * sizeof *key.object)};
    PyObject *made = NULL;
    if (!operands || !key.word || !key.object) PyErr_NoMemory();
    else {
        const int done = pac_treedef_key(self, checked, &PyTuple_GET_ITEM(leaves, 0), operands, NULL, &key);
        if (done > 0) made = pac_key_object(&key);
        else if (!done) PyErr_SetString(PyExc_TypeError, "these are no arguments of a kernel");
    }
    for (int k = 0; k < key.objects; ++k) Py_DECREF(key.object[k]);
    PyMem_Free(key.object);
    PyMem_Free(key.word);
    PyMem_Free(operands);
    return made;
}

static int treedef_traverse(PyObject *object, visitproc visit, void *arg) {
    pac_treedef *self = (pac_treedef *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->static_key);
    for (int k = 0; k < self->nodes; ++k) Py_VISIT(self->node[k].kind);
    return 0;
}

static int treedef_clear(PyObject *object) {
    pac_treedef *self = (pac_treedef *)object;
    const int nodes = self->nodes, leaves = self->leaves;
    self->nodes = self->items = self->leaves = 0;
    for (int k = 0; k < leaves; ++k) PyMem_Free(self->leaf[k].sizes);
    for (int k = 0; k < nodes; ++k) {
        Py_CLEAR(self->node[k].kind);
        Py_CLEAR(self->node[k].names);
    }
    Py_CLEAR(self->static_key);
    return 0;
}

static void treedef_dealloc(PyObject *object) {
    pac_treedef *self = (pac_treedef *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    treedef_clear(object);
    PyMem_Free(self->node);
    PyMem_Free(self->leaf);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef treedef_methods[] = {
    {"key", treedef_key, METH_VARARGS, "key(checked, leaves)"},
    {0},
};
static PyType_Slot treedef_slots[] = {
    {Py_tp_new, treedef_new},           {Py_tp_dealloc, treedef_dealloc}, {Py_tp_traverse, treedef_traverse},
    {Py_tp_clear, treedef_clear},       {Py_tp_methods, treedef_methods},
    {Py_tp_doc, "How arguments of one pytree are flattened: TreeDef(items, static_key, is_plain)."},
    {0},
};
static PyType_Spec treedef_spec = {"pyarray._core.TreeDef", sizeof(pac_treedef), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, treedef_slots};

int pac_add_treedef_type(PyObject *module) {
    pac_treedef_type = (PyTypeObject *)PyType_FromSpec(&treedef_spec);
    return pac_treedef_type ? PyModule_AddType(module, pac_treedef_type) : -1;
}

// Graphs of kernel nodes. What an executable graph runs is copied when it is launched: later updates don't reach it.
#include "emulator.h"

struct Node {
    uintptr_t handle;
    std::set<uintptr_t> after; // nodes before it
    Kernel kernel;
};
struct Graph {
    std::vector<Node> nodes;
};
struct Executable {
    int device = 0;
    std::vector<Node> nodes;
    Place last; // of its last launch
};
struct KernelParams { // hipKernelNodeParams
    unsigned block[3];
    void **extra;
    void *function;
    unsigned grid[3];
    void **params;
    unsigned shared;
};

static Handles<Graph> &graphs = *new Handles<Graph>(0x560000000000);
static Handles<Executable> &executables = *new Handles<Executable>(0x570000000000);
static uintptr_t last_node = 0x580000000000;

static int kernel_of(const KernelParams *p, Kernel *made)
{
    return p ? make_kernel(p->function, p->grid, p->block, p->shared, p->params, p->extra, made) : InvalidValue;
}

EXPORT int hipGraphCreate(void **out, unsigned flags)
{
    BEGIN;
    if (flags) return InvalidValue;
    *out = (void *)graphs.add(std::make_shared<Graph>());
    return Success;
}

EXPORT int hipGraphDestroy(void *handle)
{
    BEGIN;
    return graphs.live.erase((uintptr_t)handle) ? Success : InvalidValue;
}

EXPORT int hipGraphAddKernelNode(void **out, void *handle, void *const *after, size_t count, const KernelParams *params)
{
    BEGIN;
    const auto graph = graphs.find(handle);
    if (!graph || (count && !after)) return InvalidValue;
    Node node;
    for (size_t k = 0; k < count; ++k) {
        bool known = false;
        for (const Node &other : graph->nodes) known |= other.handle == (uintptr_t)after[k];
        if (!known || !node.after.insert((uintptr_t)after[k]).second) return InvalidValue;
    }
    if (int error = kernel_of(params, &node.kernel)) return error;
    node.handle = last_node += 16;
    graph->nodes.push_back(node);
    *out = (void *)node.handle;
    return Success;
}

EXPORT int hipGraphInstantiateWithFlags(void **out, void *handle, unsigned long long flags)
{
    BEGIN;
    const auto graph = graphs.find(handle);
    if (!graph || flags) return InvalidValue;
    auto made = std::make_shared<Executable>();
    made->device = current_device;
    made->nodes = graph->nodes;
    *out = (void *)executables.add(made);
    return Success;
}

EXPORT int hipGraphExecDestroy(void *handle)
{
    BEGIN;
    const auto executable = executables.find(handle);
    if (!executable) return InvalidValue;
    if (!executable->last.reached()) // the real one's headers don't say that it may be in use
        return broke(executable->device, InvalidValue, "an executable graph is destroyed before its work is done");
    executables.live.erase((uintptr_t)handle);
    return Success;
}

EXPORT int hipGraphExecKernelNodeSetParams(void *handle, void *node_handle, const KernelParams *params)
{
    BEGIN;
    const auto executable = executables.find(handle);
    if (!executable) return InvalidValue;
    for (Node &node : executable->nodes)
        if (node.handle == (uintptr_t)node_handle) {
            Kernel kernel;
            if (int error = kernel_of(params, &kernel)) return error;
            node.kernel = kernel;
            return Success;
        }
    return InvalidValue;
}

// The last ones that can run go first, so that a dependency that is missing shows.
static int run_all(std::vector<Node> nodes)
{
    while (!nodes.empty()) {
        size_t k = nodes.size();
        while (k-- > 0) {
            bool ready = true;
            for (const Node &other : nodes) ready &= !nodes[k].after.count(other.handle);
            if (ready) break;
        }
        const Node node = nodes[k];
        nodes.erase(nodes.begin() + (long)k);
        if (int error = run(node.kernel)) return error;
    }
    return Success;
}

EXPORT int hipGraphLaunch(void *handle, void *stream_handle)
{
    BEGIN;
    const auto executable = executables.find(handle);
    const auto stream = stream_of(stream_handle);
    if (!executable) return InvalidValue;
    if (!stream || stream->device != current_device || executable->device != current_device) return InvalidHandle;
    const auto nodes = executable->nodes;
    std::vector<Place> after; // the one before, on whatever stream
    if (!executable->last.reached()) after.push_back(executable->last);
    executable->last = {stream, stream->tail() + 1};
    enqueue(stream, [nodes] { return run_all(nodes); }, after);
    return Success;
}

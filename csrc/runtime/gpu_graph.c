/* Graphs of kernels: the vendor's graph of a chain of grids; pyarray_gpu.h has the contract. */
#include "pyarray_gpu.h"
#include <stdlib.h>
#include <string.h>

typedef int (*create_fn)(uintptr_t *graph, unsigned flags);
typedef int (*add_fn)(uintptr_t *node, uintptr_t graph, const uintptr_t *after, size_t count, const void *params);
typedef int (*instantiate_fn)(uintptr_t *exec, uintptr_t graph, unsigned long long flags);
typedef int (*set_fn)(uintptr_t exec, uintptr_t node, const void *params);
typedef int (*launch_fn)(uintptr_t exec, uintptr_t stream);
typedef int (*handle_fn)(uintptr_t handle);

/* CUDA_KERNEL_NODE_PARAMS_v2, of CUDA 12 and later. The last two are for kernels without `func`. */
typedef struct cuda_params {
    uintptr_t func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    uintptr_t kern, context;
} cuda_params;

/* hipKernelNodeParams */
typedef struct hip_params {
    unsigned block[3];
    void **extra;
    uintptr_t func;
    unsigned grid[3];
    void **params;
    unsigned shared;
} hip_params;

/* Parameters of a node in the layout of either vendor. They point to one another, and the vendor copies them. */
typedef struct node_params {
    void *extra[5];
    size_t nbytes;
    union {
        cuda_params cuda;
        hip_params hip;
    } of;
} node_params;

static const void *params_of(const pa_gpu_graph *graph, const pa_gpu_node *node, node_params *made)
{
    const pa_gpu_step *step = node->step;
    const unsigned threads = step->threads ? (unsigned)step->threads : 1;
    memset(made, 0, sizeof *made);
    made->nbytes = node->nbytes;
    /* CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE are 1 and 2, and so are HIP's */
    made->extra[0] = (void *)1, made->extra[1] = (void *)node->slots;
    made->extra[2] = (void *)2, made->extra[3] = &made->nbytes;
    made->extra[4] = (void *)graph->device->param_end;
    if (graph->device->param_end) { /* HIP's alone is not 0 */
        const hip_params hip = {{threads, 1, 1}, made->extra, step->function, {node->blocks, 1, 1}, 0,
                                (unsigned)step->shared};
        made->of.hip = hip;
    } else {
        const cuda_params cuda = {step->function,         {node->blocks, 1, 1}, {threads, 1, 1},
                                  (unsigned)step->shared, 0,                    made->extra, 0, 0};
        made->of.cuda = cuda;
    }
    return &made->of;
}

/* Fills nodes from number `first` on, `most` at most, with the grids of a launch's arguments. Returns how many grids
   there are. */
static int64_t find_grids(pa_gpu_graph *graph, const pa_gpu_member *launch, int64_t first, int64_t most)
{
    pa_gpu_grid grid;
    int64_t count = 0;
    for (int64_t k = 0; (k = pa_gpu_next_grid(launch->plan, k, launch->slots, &grid)) >= 0; ++count) {
        if (count >= most) continue;
        pa_gpu_node *node = &graph->nodes[first + count];
        node->step = grid.step, node->blocks = grid.blocks;
        node->slots = launch->slots, node->nbytes = launch->nbytes;
        if (!node->nbytes) node->slots = (const char *)pa_gpu_no_slots, node->nbytes = sizeof pa_gpu_no_slots;
    }
    return count;
}

static int make(pa_gpu_graph *graph)
{
    const pa_gpu_device *device = graph->device;
    node_params params;
    int error = ((create_fn)device->graph_create)(&graph->graph, 0);
    graph->node_count = graph->ranges_known = 0;
    for (int64_t k = 0; k < graph->launch_count; ++k) {
        pa_gpu_member *launch = &graph->launches[k];
        launch->node = graph->node_count;
        launch->node_count = find_grids(graph, launch, launch->node, launch->plan->step_count);
        launch->changed = 0;
        graph->node_count += launch->node_count;
    }
    for (int64_t k = 0; k < graph->node_count && !error; ++k) {
        pa_gpu_node *node = &graph->nodes[k];
        const uintptr_t *before = k ? &graph->nodes[k - 1].node : 0;
        error = ((add_fn)device->graph_add_kernel)(&node->node, graph->graph, before, k > 0,
                                                   params_of(graph, node, &params));
    }
    return error ? error : ((instantiate_fn)device->graph_instantiate)(&graph->exec, graph->graph, 0);
}

int pa_gpu_graph_make(pa_gpu_graph *graph)
{
    uintptr_t before;
    int error = pa_gpu_enter_context(graph->device, &before);
    if (error) return error;
    error = make(graph);
    pa_gpu_leave_context(graph->device, before);
    return error;
}

void pa_gpu_graph_move(pa_gpu_graph *graph, const pa_gpu_place *places, int64_t count, uintptr_t address)
{
    for (int64_t k = 0; k < count; ++k) {
        pa_gpu_member *launch = &graph->launches[places[k].launch];
        const uintptr_t moved = address + (uintptr_t)places[k].offset;
        memcpy(launch->slots + 8 * places[k].slot, &moved, sizeof moved);
        launch->changed = 1;
    }
}

/* Sets the nodes of changed launches. What fails in between is set again by the next call. */
static int set_nodes(pa_gpu_graph *graph)
{
    node_params params;
    if (!graph->exec) return PA_GPU_REMAKE;
    for (int64_t k = 0; k < graph->launch_count; ++k) {
        pa_gpu_member *launch = &graph->launches[k];
        if (!launch->changed) continue;
        graph->ranges_known = 0;
        if (find_grids(graph, launch, launch->node, launch->node_count) != launch->node_count) return PA_GPU_REMAKE;
        for (int64_t n = launch->node; n < launch->node + launch->node_count; ++n) {
            const int error = ((set_fn)graph->device->graph_set_kernel)(graph->exec, graph->nodes[n].node,
                                                                        params_of(graph, &graph->nodes[n], &params));
            if (error) return error;
        }
        launch->changed = 0;
    }
    return 0;
}

static int compare_ranges(const void *a, const void *b)
{
    const uintptr_t x = ((const pa_gpu_range *)a)->low, y = ((const pa_gpu_range *)b)->low;
    return (x > y) - (x < y);
}

/* What all launches read and write: ranges that overlap are one, and so are all beyond a limit. */
static void find_ranges(pa_gpu_graph *graph)
{
    pa_gpu_range *ranges = graph->ranges;
    int32_t found = 0, merged = 0;
    for (int64_t k = 0; k < graph->launch_count; ++k)
        found += pa_gpu_ranges(graph->launches[k].plan, graph->launches[k].slots, ranges + found);
    qsort(ranges, (size_t)found, sizeof *ranges, compare_ranges);
    for (int32_t k = 0; k < found; ++k) {
        pa_gpu_range *last = merged ? &ranges[merged - 1] : 0;
        if (!last || (ranges[k].low >= last->high && merged < PA_GPU_OPERANDS)) {
            ranges[merged++] = ranges[k];
            continue;
        }
        if (ranges[k].high > last->high) last->high = ranges[k].high;
        last->writes |= ranges[k].writes;
    }
    graph->range_count = merged;
    graph->ranges_known = 1;
}

static int launch_in_order(pa_gpu_graph *graph)
{
    pa_gpu_device *device = graph->device;
    pa_gpu_stream *stream = pa_gpu_current_stream(device);
    const int ordered = PA_GPU_ORDERED(device, stream);
    int error = 0;
    if (ordered) {
        if (!graph->ranges_known) find_ranges(graph);
        error = pa_gpu_order_begin(device, stream, graph->ranges, graph->range_count);
    }
    if (!error && graph->node_count) error = ((launch_fn)device->graph_launch)(graph->exec, stream->handle);
    pa_gpu_record_launch(device, stream, graph->function);
    if (ordered) error = pa_gpu_order_end(device, stream, graph->ranges, graph->range_count, error);
    if (device->blocking && !error) error = ((handle_fn)device->synchronize)(stream->handle);
    return error;
}

int pa_gpu_graph_launch(pa_gpu_graph *graph)
{
    uintptr_t before;
    int error = pa_gpu_enter_context(graph->device, &before);
    if (error) return error;
    error = set_nodes(graph);
    if (!error) error = launch_in_order(graph);
    pa_gpu_leave_context(graph->device, before);
    return error;
}

int pa_gpu_graph_destroy(pa_gpu_graph *graph)
{
    uintptr_t before;
    int error = pa_gpu_enter_context(graph->device, &before), last = 0;
    if (error) return error;
    if (graph->exec) error = ((handle_fn)graph->device->graph_exec_destroy)(graph->exec);
    if (graph->graph) last = ((handle_fn)graph->device->graph_destroy)(graph->graph);
    graph->exec = graph->graph = 0;
    pa_gpu_leave_context(graph->device, before);
    return error ? error : last;
}

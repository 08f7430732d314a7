/* Graphs of kernels: the vendor's graph of a chain of grids; pyarray_gpu.h has the contract. */
#include "pyarray_gpu.h"
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

static int make(pa_gpu_graph *graph)
{
    const pa_gpu_device *device = graph->device;
    node_params params;
    int error = ((create_fn)device->graph_create)(&graph->graph, 0);
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

int pa_gpu_graph_set(const pa_gpu_graph *graph, int64_t k)
{
    uintptr_t before;
    node_params params;
    int error = pa_gpu_enter_context(graph->device, &before);
    if (error) return error;
    error = ((set_fn)graph->device->graph_set_kernel)(graph->exec, graph->nodes[k].node,
                                                      params_of(graph, &graph->nodes[k], &params));
    pa_gpu_leave_context(graph->device, before);
    return error;
}

int pa_gpu_graph_launch(const pa_gpu_graph *graph)
{
    uintptr_t before;
    pa_gpu_device *device = graph->device;
    pa_gpu_stream *stream = pa_gpu_current_stream(device);
    int error = pa_gpu_enter_context(device, &before);
    if (error) return error;
    const int ordered = PA_GPU_ORDERED(device, stream);
    if (ordered) error = pa_gpu_order_begin(device, stream, graph->ranges, graph->range_count);
    if (!error && graph->node_count) error = ((launch_fn)device->graph_launch)(graph->exec, stream->handle);
    pa_gpu_record_launch(device, stream, graph->function);
    if (ordered) error = pa_gpu_order_end(device, stream, graph->ranges, graph->range_count, error);
    if (device->blocking && !error) error = ((handle_fn)device->synchronize)(stream->handle);
    pa_gpu_leave_context(device, before);
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

/* pa_grid_cpu_block.h: runs the threads of a block on a CPU, one after another. Compiled once for many kernels with
   PA_GRID_STATE and PA_GRID_FN, which say how its variable and its functions are linked. */
#ifndef PA_GRID_CPU_BLOCK_H
#define PA_GRID_CPU_BLOCK_H
#ifndef PA_GRID_FN
#define PA_GRID_STATE static thread_local
#define PA_GRID_FN static
#endif

extern "C" {
void *mmap(void *, size_t, int, int, int, long) noexcept;
int munmap(void *, size_t) noexcept;
int mprotect(void *, size_t, int) noexcept;
}
PA_GRID_STATE pa_grid_state pa_grid;

/* A context switch: pushes the callee-saved registers, saves the stack pointer in *from and continues at `to`. */
extern "C" __attribute__((visibility("hidden"))) void pa_grid_switch(void **from, void *to);
#if defined(__x86_64__)
asm(".pushsection .text\n.p2align 4\n.type pa_grid_switch,%function\npa_grid_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\nmovq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size pa_grid_switch,.-pa_grid_switch\n.popsection\n");
static void *pa_grid_new_stack(char *top, void (*start)())
{
    void **sp = (void **)top - 8;
    sp[6] = (void *)start, sp[7] = 0;
    return sp;
}
#elif defined(__aarch64__)
asm(".pushsection .text\n.p2align 4\n.type pa_grid_switch,%function\npa_grid_switch:\n"
    "sub sp,sp,#160\nstp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\n"
    "stp x29,x30,[sp,#80]\nstp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\nstp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\n"
    "mov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\nldp x27,x28,[sp,#64]\n"
    "ldp x29,x30,[sp,#80]\nldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\nldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
    "add sp,sp,#160\nret\n.size pa_grid_switch,.-pa_grid_switch\n.popsection\n");
static void *pa_grid_new_stack(char *top, void (*start)())
{
    void **sp = (void **)top - 20;
    sp[10] = 0, sp[11] = (void *)start;
    return sp;
}
#else
#include <ucontext.h>
/* What is saved is the context at the end of the stack, or the scheduler's. */
extern "C" void pa_grid_switch(void **from, void *to)
{
    ucontext_t here;
    *from = &here;
    swapcontext(&here, (ucontext_t *)to);
}
static void *pa_grid_new_stack(char *top, void (*start)())
{
    ucontext_t *context = (ucontext_t *)(((uintptr_t)top - sizeof(ucontext_t)) & ~(uintptr_t)63);
    getcontext(context);
    context->uc_stack.ss_sp = top - PA_GRID_STACK;
    context->uc_stack.ss_size = (size_t)((char *)context - (top - PA_GRID_STACK));
    context->uc_link = 0;
    makecontext(context, start, 0);
    return context;
}
#endif

#define PA_GRID_SPACE ((sizeof(pa_grid_space) + 65535) / 65536 * 65536)
#define PA_GRID_BYTES (PA_GRID_SPACE + (size_t)PA_GRID_THREADS * (PA_GRID_GUARD + PA_GRID_STACK))

static pa_grid_space *pa_grid_reserve()
{
    /* readable and writable; private, anonymous, and not counted before it is touched */
    void *p = mmap(0, PA_GRID_BYTES, 3, 0x4022, -1, 0);
    return p == (void *)-1 ? 0 : (pa_grid_space *)p;
}
static void pa_grid_enter(int t)
{
    const uint3 d = pa_grid.block_dim;
    pa_grid.current = t;
    pa_grid.thread = {t % d.x, t / d.x % d.y, t / (d.x * d.y)};
    pa_grid.space->threads[t].state = PA_GRID_RUNS;
}
/* Runs on each stack: the threads that haven't begun, one after another. */
static void pa_grid_worker()
{
    void *unused;
    while (pa_grid.next < pa_grid.count) {
        const int k = pa_grid.next++;
        pa_grid_enter(pa_grid.backwards ? pa_grid.count - 1 - k : k);
        pa_grid.call(pa_grid.kernel, pa_grid.params);
        pa_grid.space->threads[pa_grid.current].state = PA_GRID_ENDED;
        ++pa_grid.ended;
    }
    pa_grid_switch(&unused, pa_grid.space->scheduler);
}
static void pa_grid_resume(int t)
{
    pa_grid_enter(t);
    pa_grid_switch(&pa_grid.space->scheduler, pa_grid.space->threads[t].sp);
}
PA_GRID_FN __noinline__ void pa_grid_wait(int state, int line, uint64_t mask, uint64_t value)
{
    pa_grid_thread *t = &pa_grid.space->threads[pa_grid.current];
    t->state = state, t->line = line, t->mask = mask, t->value = value;
    pa_grid_switch(&t->sp, pa_grid.space->scheduler);
}
PA_GRID_FN __noinline__ void pa_grid_fail(const char *error)
{
    pa_grid.error = error;
    pa_grid_wait(PA_GRID_ENDED, 0, 0, 0);
}

/* The lanes that wait at `line`, of the warp from thread `low` on; 0 if a lane of their masks is missing. */
static uint64_t pa_grid_group(int low, int lanes, int line)
{
    const pa_grid_thread *threads = pa_grid.space->threads + low;
    uint64_t group = 0, live = 0, wanted = 0;
    for (int k = 0; k < lanes; ++k) {
        if (threads[k].state != PA_GRID_ENDED) live |= 1ull << k;
        if (threads[k].state == PA_GRID_WARP && threads[k].line == line) {
            group |= 1ull << k;
            wanted |= threads[k].mask;
        }
    }
    return wanted & live & ~group ? 0 : group;
}
/* Resumes a complete group of a warp whose lanes all wait. Of several groups the one with the lowest line is first:
   lanes behind a loop wait for those that are still in it. */
static bool pa_grid_resume_group(int low, int lanes)
{
    pa_grid_space *space = pa_grid.space;
    pa_grid_thread *threads = space->threads + low;
    for (int after = -1;;) {
        int line = 0x7fffffff;
        for (int k = 0; k < lanes; ++k)
            if (threads[k].state == PA_GRID_WARP && threads[k].line > after && threads[k].line < line)
                line = threads[k].line;
        if (line == 0x7fffffff) {
            if (after >= 0) pa_grid.error = "lanes of a warp wait for lanes in their mask that do not come";
            return false;
        }
        if (const uint64_t group = pa_grid_group(low, lanes, line)) {
            space->groups[low / pa_grid.warp] = group;
            for (int k = 0; k < lanes; ++k) space->lane_values[low + k] = threads[k].value;
            for (int k = 0; k < lanes && !pa_grid.error; ++k)
                if (group >> k & 1) pa_grid_resume(low + k);
            return true;
        }
        after = line;
    }
}
static void pa_grid_barrier()
{
    const pa_grid_thread *threads = pa_grid.space->threads;
    if (pa_grid.ended) pa_grid.error = "a barrier is reached by a part of the block's threads only";
    pa_grid.votes = 0;
    for (int t = 0; t < pa_grid.count && !pa_grid.error; ++t) {
        if (threads[t].line != threads[0].line) pa_grid.error = "threads of a block wait at different barriers";
        pa_grid.votes += threads[t].value != 0;
    }
    for (int k = 0; k < pa_grid.count && !pa_grid.error; ++k)
        pa_grid_resume(pa_grid.backwards ? pa_grid.count - 1 - k : k);
}
static void pa_grid_block()
{
    pa_grid_space *space = pa_grid.space;
    pa_grid.next = pa_grid.ended = 0;
    for (int used = 0; pa_grid.next < pa_grid.count && !pa_grid.error; ++used) {
        char *low = (char *)space + PA_GRID_SPACE + (size_t)used * (PA_GRID_GUARD + PA_GRID_STACK);
        if (used == space->guarded) {
            mprotect(low, PA_GRID_GUARD, 0);
            ++space->guarded;
        }
        pa_grid_switch(&space->scheduler, pa_grid_new_stack(low + PA_GRID_GUARD + PA_GRID_STACK, pa_grid_worker));
    }
    while (pa_grid.ended < pa_grid.count && !pa_grid.error) {
        bool resumed = false;
        for (int low = 0; low < pa_grid.count && !pa_grid.error; low += pa_grid.warp)
            resumed |=
                pa_grid_resume_group(low, pa_grid.count - low < pa_grid.warp ? pa_grid.count - low : pa_grid.warp);
        if (!resumed && !pa_grid.error) pa_grid_barrier();
    }
}
PA_GRID_FN int pa_grid_blocks(pa_grid_launch *launch)
{
    void *temporary = 0, **stacks = launch->stacks ? launch->stacks : &temporary;
    const uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    const uint32_t *g = launch->grid, *b = launch->block;
    if (launch->warp != 32 && launch->warp != 64) pa_grid.error = "a warp has 32 or 64 lanes";
    if (threads < 1 || threads > PA_GRID_THREADS) pa_grid.error = "a block has 1 to 1024 threads";
    if (launch->shared > PA_GRID_SHARED_BYTES) pa_grid.error = "a block has at most 64 KiB of dynamic shared memory";
    if (!pa_grid.error && !*stacks && !(*stacks = pa_grid_reserve())) pa_grid.error = "no memory for stacks";
    pa_grid.space = (pa_grid_space *)*stacks;
    pa_grid.warp = (int)launch->warp, pa_grid.count = (int)threads, pa_grid.backwards = launch->backwards != 0;
    pa_grid.grid_dim = {g[0], g[1], g[2]}, pa_grid.block_dim = {b[0], b[1], b[2]};
    for (int64_t k = launch->first; k < launch->first + launch->count && !pa_grid.error; ++k) {
        pa_grid.block = {(unsigned)(k % g[0]), (unsigned)(k / g[0] % g[1]), (unsigned)(k / ((int64_t)g[0] * g[1]))};
        pa_grid_block();
    }
    if (temporary) munmap(temporary, PA_GRID_BYTES);
    launch->error = pa_grid.error;
    return pa_grid.error != 0;
}

#endif

/* pa_gemm_mma.h: C = A B on the tensor cores of NVIDIA GPUs from sm_80 on, for any strides, batches and tails: float16
   and bfloat16 with sums in float32, float64, float32 rounded to tf32 (pa_gemm_tf32.h), and on sm_90 int8 and float8.
   Elsewhere, and in debug mode, pa_gemm_mma is the pa_gemm of pa_gemm_gpu.h, same macros. Included with PA_MMA ("f16",
   "bf16", "f64", "tf32", "s8", "u8", "e4m3", "e5m2"), PA_M_FLOAT8 (whether it is one of the last two), PA_M_HALF_C
   (whether C is of two bytes and of at most such operands), PA_M_BF16X6 (whether operands are parts of float32) and the
   tile: PA_M_ROWS x PA_M_COLUMNS of C, a warp for each PA_M_WARP_ROWS x PA_M_WARP_COLUMNS of them; slices of
   PA_M_DEPTH, of which PA_M_STAGES are in (dynamic) shared memory. Slices have the layout of memory, so that chunks of
   16 bytes are copied by cp.async: in lines along the depth (k-major), or along the rows, of which a tile has panels of
   128 bytes. Chunks are swizzled within 128 bytes, so that those read together are in different banks. Unaligned
   operands are loaded by elements into the same layout, so an element of C doesn't depend on strides. Warps as wide as
   a tile of halves multiply by wgmma where sm_90a has it: four warps read the operands from shared memory, whose lines
   are as it wants them, while the threads go on. Else fragments come through registers (PTX ISA, "Matrix fragments for
   mma.m16n8k16", "Asynchronous warpgroup level matrix instructions"), those of the next instructions ahead of their
   use. Slices of doubles along the depth are in panels of depth 8, whose lines have 64 bytes. */
#ifndef PA_GEMM_MMA_H
#define PA_GEMM_MMA_H
#include "pa_dependent_launch.h"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define PA_M_HAS_WGMMA 1
#else
#define PA_M_HAS_WGMMA 0
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 800 || defined(PA_DEBUG_CHECKS) || \
    (!PA_M_HAS_WGMMA && PA_BYTES != 2 && PA_BYTES != 8)
#include "pa_gemm_gpu.h"
#define PA_M_THREADS PA_G_THREADS
#define PA_M_BLOCKS PA_G_BLOCKS
PA_ALWAYS void pa_gemm_mma(const pa_gemm_grid *g, pa_runtime *rt)
{
    pa_griddep_wait();
    pa_gemm(g, rt);
}
#else
#include "pa_gemm_tiles.h"
#include "pa_half.h"
#if PA_M_BF16X6
#include "pa_gemm_bf16x6.h"
#endif

#define PA_M_WGMMA (PA_M_HAS_WGMMA && PA_BYTES <= 4 && PA_M_WARP_COLUMNS == PA_M_COLUMNS)
#define PA_GEMM_TILE_ROWS (PA_M_ROWS * PA_M_CLUSTER)
#define PA_M_TMA (PA_M_BULK && (PA_M_WGMMA || (PA_M_HAS_WGMMA && PA_BYTES == 8)))
enum {
    PA_M_DOWN = PA_M_ROWS / PA_M_WARP_ROWS, /* warps below each other */
    /* threads that compute; a warpgroup before them copies, with bulk tensor copies */
    PA_M_WORKERS = PA_M_DOWN * (PA_M_COLUMNS / PA_M_WARP_COLUMNS) * 32,
    PA_M_FIRST = PA_M_TMA ? 128 : 0,
    PA_M_THREADS = PA_M_FIRST + PA_M_WORKERS,
    /* of a processor: one where warps give registers to others */
    PA_M_BLOCKS = PA_M_TMA || PA_M_ROWS * PA_M_COLUMNS * sizeof(PA_ACC) > 32 << 10 ? 1 : 2,
    PA_M_SIZE = sizeof(PA_T),
    PA_M_CHUNK = 16 / PA_M_SIZE, /* elements */
    PA_M_STEP = PA_M_SIZE == 8 ? 8 : 32 / PA_M_SIZE, /* the depth of an instruction */
    PA_M_STEPS = PA_M_DEPTH / PA_M_STEP,
    PA_M_SLICE_A = PA_M_ROWS * PA_M_DEPTH * PA_M_SIZE,
    PA_M_SLICE = PA_M_SLICE_A + PA_M_COLUMNS * PA_M_DEPTH * PA_M_SIZE,
    PA_M_PANEL = PA_M_DEPTH * 128,
    PA_M_LINE_ALONG = PA_M_SIZE == 8 ? 64 : PA_M_DEPTH * PA_M_SIZE /* bytes of a line along the depth */
};

/* The number of a thread that computes, and a barrier of these threads. */
PA_FN int pa_mma_thread(void) { return (int)threadIdx.x - PA_M_FIRST; }
PA_FN void pa_mma_sync(void)
{
#if PA_M_TMA
    asm volatile("bar.sync 1, %0;" ::"n"((int)PA_M_WORKERS) : "memory");
#else
    __syncthreads();
#endif
}

/* 16 rows (or columns) by the depth of an instruction, as mma takes them. */
#if PA_BYTES == 2
struct pa_mma_fragment { uint32_t v[4]; };
#else
struct pa_mma_fragment { double v[4]; };
#endif

/* Copies 16 bytes to shared memory; those past `inside` are zeros. */
PA_FN void pa_mma_copy(unsigned to, const char *from, int inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside));
}

/* An element as it is multiplied. */
PA_FN PA_T pa_mma_rounded(PA_T x)
{
#if PA_BYTES == 4
    uint32_t bits;
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    x = __uint_as_float(bits);
#endif
    return x;
}

/* Slices in shared memory of an operand, of which a tile has ROWS rows (columns, for B). PAIRS: it is A. */
template <int ROWS, bool K_MAJOR, bool PAIRS> struct pa_mma_slices {
    enum {
        LINE = K_MAJOR ? (int)PA_M_LINE_ALONG : 128,
        CHUNKS = LINE / 16,
        PANEL = K_MAJOR ? ROWS * LINE : (int)PA_M_PANEL
    };
    unsigned first; /* bytes in a slice: of this lane's first fragment */

    __device__ static inline unsigned swizzle(int line)
    {
        return !K_MAJOR || LINE == 128 ? line & 7 : line >> 1 & 3;
    }
    __device__ static inline unsigned offset_of(int line, int chunk)
    {
        return chunk / CHUNKS * PANEL + line * LINE + ((chunk % CHUNKS ^ swizzle(line)) << 4);
    }
    __device__ inline void start(int warp)
    {
        const int lane = (int)threadIdx.x % 32;
#if PA_BYTES == 2 /* each lane names the line of 16 bytes that ldmatrix is to read */
        if (K_MAJOR) first = offset_of(warp + lane % 16, lane / 16);
        else first = offset_of(lane % 8 + lane / 16 * 8, warp / 8 + lane / 8 % 2);
#else
        const int depth = lane % 4 * 2 | lane % 2;
        if (K_MAJOR) first = offset_of(warp + lane / 4, depth / 2) + depth % 2 * 8;
        else if (PAIRS) first = offset_of(depth, warp / 2 + lane / 4);
        else first = offset_of(depth, (warp + lane / 4) / 2) + lane / 4 % 2 * 8;
#endif
    }
    /* The warp's fragment i for step d of the depth. Of doubles, the instruction's depths n and n + 4 are 2 n and
       2 n + 1, or the other way round for odd n, so that no two lanes of half a warp read from one bank. With PAIRS
       across the depth its rows n and n + 8 are 2 n and 2 n + 1, which are read together. */
    __device__ inline pa_mma_fragment read(unsigned slice, const unsigned char *memory, int d, int i) const
    {
        pa_mma_fragment x;
#if PA_BYTES == 2
        const unsigned p = slice + (K_MAJOR ? (first ^ d * 32) + i * 16 * LINE : (first ^ i * 32) + d * 16 * LINE);
        if (K_MAJOR)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(x.v[0]), "=r"(x.v[1]), "=r"(x.v[2]), "=r"(x.v[3]) : "r"(p));
        else
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(x.v[0]), "=r"(x.v[1]), "=r"(x.v[2]), "=r"(x.v[3]) : "r"(p));
#else
        const unsigned char *at = memory + (K_MAJOR ? d * PANEL + i * 16 * LINE : i * PANEL + d * 8 * LINE);
#pragma unroll
        for (int e = 0; e < 2; ++e)
            if (K_MAJOR) {
                x.v[e] = *(const double *)(at + first + e * 8 * LINE);
                x.v[2 + e] = *(const double *)(at + (first ^ 8) + e * 8 * LINE);
            } else if (PAIRS) {
                const double2 two = *(const double2 *)(at + (first ^ e * (LINE + 16)));
                x.v[2 * e] = two.x, x.v[2 * e + 1] = two.y;
            } else {
                x.v[e] = *(const double *)(at + (first ^ e * 64));
                x.v[2 + e] = *(const double *)(at + (first ^ e * 64 ^ (LINE + 16)));
            }
#endif
        return x;
    }
};

/* The same, with how they are loaded. */
template <int ROWS, bool K_MAJOR, bool PAIRS> struct pa_mma_operand : pa_mma_slices<ROWS, K_MAJOR, PAIRS> {
    using slices = pa_mma_slices<ROWS, K_MAJOR, PAIRS>;
    enum {
        LINE = slices::LINE,
        ALONG = (K_MAJOR ? PA_M_DEPTH : ROWS) / PA_M_CHUNK, /* chunks along neighbours in memory */
        LINE_STEP = PA_M_WORKERS / ALONG,                   /* lines between a thread's chunks */
        CHUNKS_OF_THREAD = ROWS * PA_M_DEPTH / PA_M_CHUNK / PA_M_WORKERS
    };
    const char *at;          /* the thread's first chunk of the next slice */
    int64_t chunk_stride, slice_stride, element_stride; /* bytes to the next chunk, slice, element of a chunk */
    int line, chunk, rows;   /* indices of the first chunk, and how many rows are inside */
    unsigned offset;         /* bytes of the first chunk in a slice */
    bool aligned;

    __device__ inline void start(const char *base, int64_t left, int64_t rs, int64_t cs, int warp)
    {
        line = pa_mma_thread() / ALONG, chunk = pa_mma_thread() % ALONG;
        rows = left < ROWS ? (int)left : ROWS;
        offset = slices::offset_of(line, chunk);
        element_stride = K_MAJOR ? cs : rs, slice_stride = PA_M_DEPTH * cs;
        chunk_stride = LINE_STEP * (K_MAJOR ? rs : cs);
        at = base + line * (K_MAJOR ? rs : cs) + chunk * PA_M_CHUNK * element_stride;
        aligned = PA_BYTES != 4 && element_stride == PA_M_SIZE && /* tf32 is rounded by the way */
                  (((uint64_t)base | (uint64_t)(K_MAJOR ? rs : cs)) & 15) == 0;
        slices::start(warp);
    }
    /* Bytes in a slice of the thread's chunk `i`, whose line is swizzled as the first one, or by four chunks more. */
    __device__ inline unsigned offset_of_chunk(int i) const
    {
        static_assert(K_MAJOR || LINE_STEP % 4 == 0, "lines of one swizzle, or of two");
        return (!K_MAJOR && LINE_STEP % 8 && i % 2 ? offset ^ 64 : offset) + i * LINE_STEP * LINE;
    }
    /* Elements that a chunk along the depth has inside, or whether a line across it is. */
    __device__ inline int inside(int i, int depths) const
    {
        const int n = (K_MAJOR ? depths : rows) - chunk * PA_M_CHUNK;
        return line + i * LINE_STEP < (K_MAJOR ? rows : depths) && n > 0 ? n < PA_M_CHUNK ? n : PA_M_CHUNK : 0;
    }
    /* Starts to load the next slice, of which `ahead` depths are inside. ALIGNED: this is known. */
    template <bool ALIGNED> __device__ inline void load_async(unsigned to, unsigned char *memory, int64_t ahead)
    {
        const int depths = ahead < PA_M_DEPTH ? (int)ahead : PA_M_DEPTH;
        if (ALIGNED || aligned) {
#pragma unroll
            for (int i = 0; i < CHUNKS_OF_THREAD; ++i)
                pa_mma_copy(to + offset_of_chunk(i), at + i * chunk_stride, inside(i, depths) * PA_M_SIZE);
        } else {
#pragma unroll 1
            for (int i = 0; i < CHUNKS_OF_THREAD; ++i) {
                const char *from = at + i * chunk_stride;
                const int n = inside(i, depths);
                union { uint4 all; PA_T v[PA_M_CHUNK]; } x;
                x.all = make_uint4(0, 0, 0, 0);
#pragma unroll
                for (int e = 0; e < PA_M_CHUNK; ++e)
                    if (e < n) x.v[e] = pa_mma_rounded(*(const PA_T *)(from + e * element_stride));
                *(uint4 *)(memory + offset_of_chunk(i)) = x.all;
            }
        }
        at += slice_stride;
    }
};

#if PA_BYTES == 2 || PA_BYTES == 8
/* A part of C, 16 x 8, += a times half of b. */
PA_FN void pa_mma(PA_ACC *c, const pa_mma_fragment &a, const pa_mma_fragment &b, int half)
{
#if PA_BYTES == 2
    asm("mma.sync.aligned.m16n8k16.row.col.f32." PA_MMA "." PA_MMA ".f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[half]), "r"(b.v[2 + half]));
#elif __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a.v[0]), "d"(a.v[1]), "d"(a.v[2]), "d"(a.v[3]), "d"(b.v[half]), "d"(b.v[2 + half]));
#else
#pragma unroll
    for (int k = 0; k < 4; ++k)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(c[k % 2 * 2]), "+d"(c[k % 2 * 2 + 1]) : "d"(a.v[k]), "d"(b.v[k / 2 * 2 + half]));
#endif
}
#endif

struct pa_mma_accumulators { PA_ACC v[PA_M_WARP_ROWS / 16][PA_M_WARP_COLUMNS / 8][4]; };
PA_FN void pa_mma_clear(pa_mma_accumulators &sum)
{
#pragma unroll
    for (int i = 0; i < PA_M_WARP_ROWS / 16; ++i)
#pragma unroll
        for (int j = 0; j < PA_M_WARP_COLUMNS / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sum.v[i][j][e] = 0;
}

#include "pa_gemm_results.h"
#if PA_M_HALF_C || PA_BYTES == 8
#include "pa_gemm_mma_store.h"
#else
#include "pa_gemm_tf32.h"
#endif

/* Fragments of both operands, from slices by their offsets in shared memory. */
template <class A, class B> struct pa_mma_reader {
    A a;
    B b;
    unsigned char *memory;
    unsigned base; /* the same as an address of cp.async */

    __device__ inline explicit pa_mma_reader(unsigned char *shared)
    {
        memory = shared, base = (unsigned)__cvta_generic_to_shared(shared);
    }
    __device__ inline pa_mma_fragment read_a(unsigned slice, int d, int i) const
    {
        return a.read(base + slice, memory + slice, d, i);
    }
    __device__ inline void read_b(unsigned slice, int d, pa_mma_fragment *y) const
    {
#pragma unroll
        for (int j = 0; j < PA_M_WARP_COLUMNS / 16; ++j)
            y[j] = b.read(base + slice + PA_M_SLICE_A, memory + slice + PA_M_SLICE_A, d, j);
    }
};
template <bool K_MAJOR_A, bool K_MAJOR_B>
using pa_mma_operands_reader = pa_mma_reader<pa_mma_operand<PA_M_ROWS, K_MAJOR_A, true>,
                                             pa_mma_operand<PA_M_COLUMNS, K_MAJOR_B, false>>;

/* Both operands of a warp's part of the tile, which begins at `row` and `col`. */
template <bool K_MAJOR_A, bool K_MAJOR_B> struct pa_mma_operands : pa_mma_operands_reader<K_MAJOR_A, K_MAJOR_B> {
    using reader = pa_mma_operands_reader<K_MAJOR_A, K_MAJOR_B>;
    using reader::a, reader::b, reader::base, reader::memory;
    int64_t ahead; /* the depth that isn't loaded yet */

    __device__ inline pa_mma_operands(const pa_gemm_grid *g, const pa_gemm_tile_origin &t, unsigned char *shared,
                                      int row, int col)
        : reader(shared)
    {
        ahead = pa_gemm_depth(g, t);
        a.start(t.a + t.row * g->ras, g->m - t.row, g->ras, g->cas, row);
        b.start(t.b + t.col * g->cbs, g->n - t.col, g->cbs, g->rbs, col);
    }
    template <bool ALIGNED = false> __device__ inline void load_async(unsigned slice)
    {
        a.template load_async<ALIGNED>(base + slice, memory + slice, ahead);
        b.template load_async<ALIGNED>(base + slice + PA_M_SLICE_A, memory + slice + PA_M_SLICE_A, ahead);
        pa_cp_async_commit();
        ahead -= PA_M_DEPTH;
    }
};
PA_FN unsigned pa_mma_next_stage(unsigned slice)
{
    return slice == (PA_M_STAGES - 1) * PA_M_SLICE ? 0 : slice + PA_M_SLICE;
}

#if PA_M_WGMMA
#include "pa_gemm_wgmma.h"

template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_mma_mainloop(const pa_gemm_grid *g, const pa_gemm_tile_origin &t, unsigned char *shared, int row, int col,
                           pa_mma_accumulators &sum)
{
    pa_mma_operands<K_MAJOR_A, K_MAJOR_B> o(g, t, shared, row, col);
    const unsigned half = pa_mma_thread() / 128 * (PA_M_SLICE_A / 2); /* of A: 64 rows, or a panel */
    unsigned stage = 0, fill_stage = 0;
#pragma unroll 1
    for (int s = 0; s < PA_M_STAGES - 2; ++s, fill_stage += PA_M_SLICE) o.load_async(fill_stage);
#pragma unroll 1
    for (int64_t left = pa_gemm_depth(g, t); left > 0; left -= PA_M_DEPTH) {
        pa_cp_async_wait<PA_M_STAGES - 3>();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        pa_mma_sync(); /* the slice is there, and the one before the last is read by all */
        const uint64_t a = pa_wgmma_descriptor<K_MAJOR_A>(o.base + stage + half),
                       b = pa_wgmma_descriptor<K_MAJOR_B>(o.base + stage + PA_M_SLICE_A);
        pa_wgmma_stage<K_MAJOR_A, K_MAJOR_B>(sum.v[0], a, b);
        o.load_async(fill_stage);
        stage = pa_mma_next_stage(stage), fill_stage = pa_mma_next_stage(fill_stage);
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pa_mma_keep(sum.v[0]);
}
#else
/* The fragments of a warp that are in use, and those that are needed next. */
struct pa_mma_pipeline {
    enum { PARTS = PA_M_WARP_ROWS / 16 };
    pa_mma_fragment x[2], y[2][PA_M_WARP_COLUMNS / 16];

    template <class Reader> __device__ inline pa_mma_pipeline(const Reader &o, unsigned slice)
    {
        x[0] = o.read_a(slice, 0, 0), o.read_b(slice, 0, y[0]);
    }
    /* Multiplies a slice and reads the first fragments of the next one, for whose offset `advance` waits when all of
       this one are read. `load` is called once, when reads are on their way. */
    template <class Reader, class Advance, class Load>
    __device__ inline void multiply(const Reader &o, unsigned slice, pa_mma_accumulators &sum, const Advance &advance,
                                    const Load &load)
    {
#pragma unroll
        for (int d = 0; d < PA_M_STEPS; ++d)
#pragma unroll
            for (int i = 0; i < PARTS; ++i) {
                const int next = i == PARTS - 1 ? (d + 1) % PA_M_STEPS : d;
                if (i == PARTS - 1 && d == PA_M_STEPS - 1) slice = advance();
                if (i == PARTS - 1) o.read_b(slice, next, y[(d + 1) % 2]);
                x[(d * PARTS + i + 1) % 2] = o.read_a(slice, next, (i + 1) % PARTS);
                if (i == 0 && d == 0) load();
#pragma unroll
                for (int j = 0; j < PA_M_WARP_COLUMNS / 8; ++j)
                    pa_mma(sum.v[i][j], x[(d * PARTS + i) % 2], y[d % 2][j / 2], j % 2);
            }
    }
};

template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_mma_mainloop(const pa_gemm_grid *g, const pa_gemm_tile_origin &t, unsigned char *shared, int row, int col,
                           pa_mma_accumulators &sum)
{
    pa_mma_operands<K_MAJOR_A, K_MAJOR_B> o(g, t, shared, row, col);
    unsigned stage = 0, fill_stage = 0;
#pragma unroll 1
    for (int s = 0; s < PA_M_STAGES - 1; ++s, fill_stage += PA_M_SLICE) o.load_async(fill_stage);
    pa_cp_async_wait<PA_M_STAGES - 2>();
    pa_mma_sync();
    pa_mma_pipeline warp(o, 0);
#pragma unroll 1
    for (int64_t left = pa_gemm_depth(g, t); left > 0; left -= PA_M_DEPTH)
        warp.multiply(
            o, stage, sum,
            [&] {
                stage = pa_mma_next_stage(stage);
                pa_cp_async_wait<PA_M_STAGES - 2>();
                pa_mma_sync();
                return stage;
            },
            [&] {
                o.load_async(fill_stage);
                fill_stage = pa_mma_next_stage(fill_stage);
            });
}
#endif

PA_FN void pa_mma_tile(const pa_gemm_grid *g, const pa_gemm_tile_origin &t)
{
    extern __shared__ __align__(1024) unsigned char pa_mma_memory[];
    const int warp = pa_mma_thread() / 32, row = warp % PA_M_DOWN * PA_M_WARP_ROWS,
              col = warp / PA_M_DOWN * PA_M_WARP_COLUMNS;
    pa_mma_accumulators sum;
    pa_mma_clear(sum);
#if PA_BYTES == 4 || PA_BYTES == 1 /* instructions take lines along the depth only */
    pa_mma_mainloop<true, true>(g, t, pa_mma_memory, row, col, sum);
#else
    const bool k_major_a = pa_gemm_k_major(g->ras, g->cas, PA_M_SIZE),
               k_major_b = pa_gemm_k_major(g->cbs, g->rbs, PA_M_SIZE);
    pa_gemm_by_layouts(k_major_a, k_major_b, [&](auto a, auto b) {
        pa_mma_mainloop<a.value, b.value>(g, t, pa_mma_memory, row, col, sum);
    });
#endif
    pa_cp_async_wait<0>();
    pa_mma_sync(); /* no copy to the slices is in flight, and no thread reads them */
    char *c = t.c + (t.row + row) * g->rcs + (t.col + col) * g->ccs;
    const pa_gemm_results results(g, t, t.row + row, t.col + col);
    const int64_t rows = pa_gemm_end(g, t) - t.row - row, columns = g->n - t.col - col;
#if PA_BYTES == 8
    if (!k_major_a) pa_mma_store<true>(g, c, rows, columns, sum, results);
    else pa_mma_store<false>(g, c, rows, columns, sum, results);
#else
    pa_mma_store(g, c, rows, columns, sum, results, pa_mma_memory);
#endif
    pa_mma_sync(); /* before the next tile overwrites them */
}

#if PA_M_TMA
#include "pa_gemm_tma.h"
PA_ALWAYS void pa_gemm_mma(const pa_gemm_grid *g, pa_runtime *) { pa_tma_gemm(g); }
#else
PA_ALWAYS void pa_gemm_mma(const pa_gemm_grid *g, pa_runtime *)
{
    pa_griddep_wait();
    const uint32_t tiles = pa_gemm_tiles<PA_M_ROWS, PA_M_COLUMNS>(g);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        pa_mma_tile(g, pa_gemm_origin_of<PA_M_ROWS, PA_M_COLUMNS>(g, tile));
}
#endif
#endif
#endif

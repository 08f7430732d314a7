/* pa_gemm_thresholds.h: where the matrix product on CPUs changes its algorithm or its blocking, each with where the
   number comes from. Those of the host are in pyarray/kernels/matmul/thresholds.py. *Timed*: both sides take equal time
   in `python -m bench gemm` on processors with AVX2 and with AVX-512. */
#ifndef PA_GEMM_THRESHOLDS_H
#define PA_GEMM_THRESHOLDS_H

/* ---- threads: work is counted in multiplications ----------------------------------------------------------------- */
/* vector multiplications that pay for waking other threads; timed. Many processors do half as many of 64 bytes at a
   time. */
#ifdef PA_GEMM_PARALLEL_WORK
#elif defined(__AVX512F__)
#define PA_GEMM_PARALLEL_WORK 16000.0
#else
#define PA_GEMM_PARALLEL_WORK 70000.0
#endif
/* from here on each product of a batch is cut, below the batch is; timed */
#ifndef PA_GEMM_SPLIT_BATCH_WORK
#define PA_GEMM_SPLIT_BATCH_WORK (384.0 * 384 * 384)
#endif
#define PA_GEMM_TINY_WORK 256             /* below, plain loops are faster than any set-up; timed */
#define PA_GEMM_PARALLEL_BYTES (1 << 19)  /* of operands that pay for waking other threads; timed */
#define PA_GEMM_MANY_TASKS 32             /* tiles are halved until there are as many: a few per thread */
/* tiles are halved while BUSY * tasks < ALL * rounds * threads: a tenth idle */
#define PA_GEMM_IMBALANCE_BUSY 11
#define PA_GEMM_IMBALANCE_ALL 10

/* ---- panels or in place: a copy pays by the number of times that a panel is read; timed -------------------------- */
#define PA_GEMM_A_IN_PLACE_PANELS 32         /* panels of B, at most, for which rows of A in runs are read in place */
#define PA_GEMM_A_IN_PLACE_PANELS_STRIDED 8  /* the same of other rows of A */
/* panels of A, at most, for which rows of B close to each other are read in place */
#define PA_GEMM_B_IN_PLACE_PANELS_NEAR 16
#define PA_GEMM_B_IN_PLACE_PANELS_FAR 6      /* the same of distant rows */
#define PA_GEMM_B_NEAR_BYTES 1536            /* between close rows: the hardware prefetches across them */
#define PA_GEMM_B_CONFLICT_BYTES 2048        /* rows so far apart share few sets of L1: half of 4096 bytes a way */

/* ---- few rows or columns: memory bandwidth is the limit */
#define PA_GEMM_FEW_AXPY 8             /* rows, where B lies in rows; timed */
#define PA_GEMM_FEW_DOTS 4             /* rows, where B lies in columns; timed */
#define PA_GEMM_FEW_DOTS_HALVES 2      /* the same of 64-bit integers without an instruction; timed */
#define PA_GEMM_FEW_BYTES (1 << 17)    /* of the operands, for more than one row; timed */
#define PA_GEMM_FEW_TASKS 8            /* tasks of a sweep, about: a few for each thread */
#define PA_GEMM_FEW_SLICE_BYTES 16     /* log2 of bytes that a slice of the depth has at least: 64 KiB; timed */
#define PA_GEMM_FEW_SUM_BYTES 16384    /* of a row of sums: half of L1 */
#define PA_GEMM_FEW_RUN_BYTES 4096     /* of elements that are converted at a time: a page */

/* ---- tall and skinny matrices: panels would be padding, but reuse what they hold --------------------------------- */
#define PA_GEMM_SKINNY_ROWS 1024    /* of a tall matrix, at least: of 256 the set-up showed */
#define PA_GEMM_SKINNY_DEPTH 64     /* of its product with a small one, at most: longer rows fill panels */
#define PA_GEMM_SKINNY_DOTS_DEPTH 32 /* the same where rows could be summed as vectors; timed with AVX2 */
/* rows, times vectors of columns, of a product of two tall ones, at most, and where panels have no padding; timed */
#define PA_GEMM_SKINNY_SIDE 12
#define PA_GEMM_SKINNY_WHOLE_SIDE 8
#define PA_GEMM_SKINNY_RUN 512      /* steps of a long depth whose sums stay in registers: B stays in L1 */
#define PA_GEMM_SKINNY_TASKS 32     /* at most: a few for each thread */

/* ---- split-k ----------------------------------------------------------------------------------------------------- */
#define PA_GEMM_SPLITK_SLICES 8     /* at most: their sums are added up by one thread */
#define PA_GEMM_SPLITK_DEPTHS 2     /* panels along the depth of a slice, at least; timed */
#define PA_GEMM_SPLITK_PANELS 64    /* panels of C from which on its tiles are enough tasks */
/* panels of rows that count at least where B is copied: tiles may be narrower there */
#define PA_GEMM_SPLITK_ROWS 16

/* ---- 64-bit integers whose values fit 32 bits -------------------------------------------------------------------- */
#define PA_GEMM_INT32_SIDE 8        /* rows and columns of C, at least: fewer save less than the check takes; timed */

/* ---- blocking: what fills L1 and L2 ------------------------------------------------------------------------------ */
#define PA_GEMM_PANEL_BYTES 32768   /* of a panel of B: an L1 of 32 KiB */
#define PA_GEMM_MIN_KC 128          /* depth, whatever the panel's bytes: less reloads sums too often */
#define PA_GEMM_KC_AVX512 512       /* with panels of 2 vectors, a micro-kernel's panel of B is 64 KiB; timed */
#define PA_GEMM_TILE_BYTES 147456   /* of a tile of A: 144 KiB, less than a third of an L2 of 512 KiB */
#define PA_GEMM_MC_AVX512 192       /* an L2 of 1 MiB, which such processors have */
#define PA_GEMM_MC_AVX512_HALF 256  /* the same, where the depth is half */
#define PA_GEMM_NC 256              /* columns of a tile: its panels of B are a share of L3 */
#define PA_GEMM_BLOCK 2048          /* rows and columns copied at a time: bounds the workspace to some 30 MiB */
#define PA_GEMM_PREFETCH_ROWS 16    /* rows of B that are prefetched into L2 ahead of their use; timed */
#define PA_GEMM_CONVERTED_RUN 64    /* elements of a row that are converted at a time: they stay in L1 */

#endif

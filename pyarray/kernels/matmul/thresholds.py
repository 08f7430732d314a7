"""Thresholds by which a matrix product's algorithm is chosen on the host, each with where it comes from.

Those of the C text are in csrc/device/pa_gemm_thresholds.h. *Timed*: by `python -m bench gemm` on CPUs and
`python -m bench gpu` on an H100, where the two sides of the threshold take equal time.
"""

from __future__ import annotations

# ---- CPUs
TUNED_WORK = 384**3  # multiplications from which on block sizes are tuned, as PA_GEMM_SPLIT_BATCH_WORK; timed

# Integers that are multiplied by pairs of words.
WORDS_MIN_SIDE = 16  # rows, columns and depth; timed
WORDS_MIN_WORK = 64**3  # multiplications of a matrix; timed

# Batches of inner products: `dots` instead of `gemm`.
MIN_DOTS = 64  # products; timed: with fewer, only splitting vectors among threads keeps all of them busy
MAX_DOT_LENGTH = 1 << 15  # elements, for fewer products than that; as reduce.PIECE: one thread's work
MIN_CHUNKED_LENGTH = 32  # elements from which on parallel accumulators pay; two AVX-512 registers of float32

# Tall narrow matrices times vectors: vectorised over rows instead of `gemm`.
MAX_NARROW_COLUMNS = 8  # elements of a row; timed
MIN_NARROW_SIZE = 1 << 16  # elements of the matrix; timed

# ---- GPUs
MIN_LARGE_TILES = 1 << 22  # elements of C: a tile of 256 x 128 for each of about 128 processors
BLOCKS_OF_PROCESSOR = (1, 3, 1, 2, 5)  # of the tiles of gemm_key.py, in their order; as PA_G_BLOCKS
# Of float32, in the time that a tile of 128 x 256 takes for an element of the depth, 0.17 us on an H100; fitted there.
TALL_TILE_TIME = 1.1  # of 256 x 128: more elements of A, whose rows are along the depth, are copied one by one
SMALL_TILE_TIME, SMALL_LEAST_TIME = 0.23, 0.44  # of a tile of 64 x 64 among others, and of one alone
SQUARE_TILES_TIME = 1.18  # of two tiles of 128 x 128 at the same time on a processor
STACKED_TILE_TIME = 0.15  # of a tile of 64 x 64 by fewer threads, of which five are computed at the same time; H200
PART_TIME = 1.3e-5  # for an element of C of a part of the depth, which is stored and read again
TILE_TIME = 20  # of the store of a large tile
SUM_TIME = 75  # of the launch that adds the parts
REST_TIME = 110  # of a launch for what the parts leave of the depth
MAX_PARTS = 16
MIN_PART_DEPTH = 64  # elements; of fewer, a tile's first slices take as long as its arithmetic
COPY_USES = 1024  # uses of an element from which on a copy of unaligned operands is paid back; timed
COPY_MIN_SIDE = 256  # rows and columns of such an operand, at least; timed
BULK_BATCH_AXES = 3  # of a batch that bulk tensor copies take: a tensor map has five axes
FETCH_COST = 0.001  # of a byte from the cache, where an element takes 1 / (TFLOP/s); fitted for sizes 512 to 8192
# Products without tiles: the part of tiles of 64 x 64 that is no padding, less than this where tensor cores wouldn't
# multiply the matrices, and where they would, up to a depth (timed on an H200); the threads of a processor, at least,
# and of a launch, at most; and where a processor has fewer tiles than so many, the depth for each of its threads.
TINY_FILL, TINY_DEPTH = (0.57, 0.2), 32
TINY_LEAST_THREADS, TINY_MOST_THREADS = 64, 1 << 30
TINY_TILES, TINY_THREAD_DEPTH = 8, 4
TINY_ROWS, TINY_BYTES = 4, 16  # of a thread's part of C, where an element has 4 bytes at least; as in pa_gemm_tiny.h
SMALL_MATRIX, STACKED_DEPTH = 256, 128  # of stacks of matrices of halves; timed with 64, 128 and 256
LEAST_TILE_ROWS = 64  # of all tiles
MOST_MATRICES = 1 << 28  # of a launch, fewer: tiles are numbered by 32 bits
BULK_FETCH_COST = 0.0001  # where tiles are loaded by bulk tensor copies; fitted for sizes 512 to 8192 on an H200
CLUSTER_WAVES = 2  # from which on clusters pay: they save power, and cost time at the start of a kernel; measured

# Tall-skinny products, of many rows with a few columns: how many, at most, of float32 and of other floats; the elements
# of the rows, at least; the rows for each processor, at least, of float32 and of others; the tiles for each processor,
# from which on they are larger; of a depth in deep tiles, the most that it is of that in tiles of 16; and the depth of
# halves, at most, that is no multiple of 64. Timed on an H200.
TALL_SKINNY_COLUMNS, TALL_SKINNY_NARROW = 32, 16
TALL_SKINNY_ELEMENTS = 1 << 21
TALL_SKINNY_ROWS, TALL_SKINNY_MANY_ROWS = 32, 128
TALL_SKINNY_TILES = 1.5
TALL_SKINNY_PADDING = 1.25
TALL_SKINNY_UNEVEN_DEPTH = 160

# Products of few results with a long depth, as stacks of parts of it: the depth, and that of a part, at least (more
# than the elements of a vector); in microseconds, the launches more; an element of a part's results; and an element
# of the depth, of a tile of 64 x 64 without matrix instructions, and of two of float32 in the kernel language at a
# time. Up to so many rows and columns a thread has sums of all results, in so many blocks of a processor; and up to
# so many more, types other than float32 are multiplied in the kernel language, too. Measured on an H200.
DEEP_LEAST, DEEP_LEAST_PART = 1024, 128
DEEP_LAUNCHES_TIME, DEEP_PART_TIME = 15, 2.7e-6
DEEP_SMALL_TIME, DEEP_TILE_TIME = 0.075, 0.084
DEEP_TINY, DEEP_BLOCKS, DEEP_NARROW = 4, 8, 16

# Products of float32 by parts of bfloat16, in microseconds; measured on an H200.
FLOAT32_TILE_TIME = 0.17  # of a large tile for an element of the depth
BF16X6_SPLIT_TIME = 3e-6  # of an element that is split and stored
BF16X6_LAUNCHES_TIME = 12  # of the three launches more
BF16X6_BLOCKS_OF_PROCESSOR = 8  # that split

# An epilogue in the product's kernel, in the units of lang/iteration_cost.py. Those of relu, and of gelu and silu of
# narrow results, cost less, and less time than a pass over the results (H200); one of gelu or silu of float32 costs 19
# and more, and takes longer than that pass.
MAX_EPILOGUE_COST = 18

# Products with a vector: the depth is split where there are too few rows.
GEMV_BLOCKS = 2  # blocks of 512 threads that a processor runs at the same time, with the registers of the kernel; timed
# Across rows, up to this depth: products without tiles, with so many threads of a processor; timed on an H200.
GEMV_TINY_DEPTH, GEMV_TINY_LEAST = 64, 256
GEMV_MANY_THREADS = 4096  # of a processor: so many that fewer of them are as fast, with more of a row each
GEMV_MIN_DEPTH = 16  # elements per line of threads of a part of the depth, at least, across rows; timed
GEMV_MIN_VECTORS = 8  # vectors per lane of a part of the depth, at least, along rows; timed
GEMV_MAX_PARTS = 128  # of the depth: one thread adds up their results
GEMV_MIN_STRIPS = 0.9  # narrow strips for each processor, from which on these need no parts; timed
GEMV_STRIP_DEPTH = 8  # elements of the depth for each line of threads of a narrow strip, at least; as PA_V_DEEP

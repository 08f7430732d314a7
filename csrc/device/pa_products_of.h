/* pa_products_of.h: products of tiles for one element type, PA_P_T; PA_P makes names. */

typedef PA_P_T PA_P(vector) __attribute__((vector_size(PA_PRODUCTS_BYTES)));
typedef PA_P_T PA_P(unaligned) __attribute__((vector_size(PA_PRODUCTS_BYTES), aligned(sizeof(PA_P_T)), may_alias));
#define PA_P_V PA_P(vector)
#define PA_P_VU PA_P(unaligned)
#define PA_P_LANES ((int)(PA_PRODUCTS_BYTES / sizeof(PA_P_T)))

/* Operands by address and strides in elements. */
typedef struct {
    const PA_P_T *at;
    int64_t rows, columns;
} PA_P(matrix);

PA_PRODUCTS_INLINE PA_P_V PA_P(fma)(PA_P_V x, PA_P_V y, PA_P_V sum)
{
#ifdef PA_P_FMA
    return PA_P_FMA(x, y, sum);
#else /* which clang makes an instruction of */
    for (int lane = 0; lane < PA_P_LANES; ++lane)
        sum[lane] = sizeof(PA_P_T) == 4 ? (PA_P_T)pa_fma_f32((float)x[lane], (float)y[lane], (float)sum[lane])
                                        : (PA_P_T)pa_fma_f64(x[lane], y[lane], sum[lane]);
    return sum;
#endif
}

/* A block of `rows` rows and `across` vectors, whose rows of B are `step` elements apart. */
PA_PRODUCTS_INLINE void PA_P(block)(PA_P_T *c, int64_t pitch, PA_P(matrix) a, const PA_P_T *b, int64_t step,
                                    int64_t depth, const int rows, const int across)
{
    PA_P_V sums[PA_PRODUCTS_ROWS][2];
    PA_PRODUCTS_UNROLL for (int i = 0; i < rows; ++i) PA_PRODUCTS_UNROLL for (int j = 0; j < across; ++j)
        sums[i][j] = ((const PA_P_VU *)(c + i * pitch))[j];
    for (int64_t p = 0; p < depth; ++p, a.at += a.columns, b += step) {
        PA_P_V column[2];
        PA_PRODUCTS_UNROLL for (int j = 0; j < across; ++j) column[j] = ((const PA_P_VU *)b)[j];
        PA_PRODUCTS_UNROLL for (int i = 0; i < rows; ++i) {
            const PA_P_V x = a.at[i * a.rows] - (PA_P_V){0};
            PA_PRODUCTS_UNROLL for (int j = 0; j < across; ++j) sums[i][j] = PA_P(fma)(x, column[j], sums[i][j]);
        }
    }
    PA_PRODUCTS_UNROLL for (int i = 0; i < rows; ++i) PA_PRODUCTS_UNROLL for (int j = 0; j < across; ++j)
        ((PA_P_VU *)(c + i * pitch))[j] = sums[i][j];
}

/* All rows of one or two vectors of columns; so many lines of what comes next are prefetched for each block. */
PA_PRODUCTS_INLINE void PA_P(blocks)(PA_P_T *c, int64_t pitch, PA_P(matrix) a, const PA_P_T *b, int64_t step,
                                     int64_t rows, int64_t depth, const int across, pa_prefetch_next *next,
                                     int64_t prefetched)
{
    int64_t i = 0;
    for (; i + PA_PRODUCTS_ROWS <= rows; i += PA_PRODUCTS_ROWS, a.at += PA_PRODUCTS_ROWS * a.rows) {
        if (next) pa_prefetch_lines(next, prefetched);
        for (int r = 0; r < PA_PRODUCTS_ROWS; ++r) /* of the next block's sums */
            __builtin_prefetch(c + (i + PA_PRODUCTS_ROWS + r) * pitch, 1, 3);
        PA_P(block)(c + i * pitch, pitch, a, b, step, depth, PA_PRODUCTS_ROWS, across);
    }
    for (; i + PA_PRODUCTS_FEWER <= rows; i += PA_PRODUCTS_FEWER, a.at += PA_PRODUCTS_FEWER * a.rows)
        PA_P(block)(c + i * pitch, pitch, a, b, step, depth, PA_PRODUCTS_FEWER, across);
    for (; i < rows; ++i, a.at += a.rows) PA_P(block)(c + i * pitch, pitch, a, b, step, depth, 1, across);
}
PA_PRODUCTS_APART void PA_P(strip)(PA_P_T *c, int64_t pitch, PA_P(matrix) a, const PA_P_T *b, int64_t step,
                                   int64_t rows, int64_t depth, int across, pa_prefetch_next *next, int64_t prefetched)
{
    if (across == 2) PA_P(blocks)(c, pitch, a, b, step, rows, depth, 2, next, prefetched);
    else PA_P(blocks)(c, pitch, a, b, step, rows, depth, 1, next, prefetched);
}

/* A strip of `columns` columns, two vectors at most, of any strides: B is copied, and so are sums of part of a
   vector. */
PA_PRODUCTS_APART void PA_P(copied)(PA_P_T *c, int64_t pitch, PA_P(matrix) a, PA_P(matrix) b, int64_t rows,
                                    int64_t columns, int64_t depth)
{
    PA_P_T panel[PA_PRODUCTS_DEPTH][2 * PA_P_LANES] __attribute__((aligned(64)));
    PA_P_T part[PA_PRODUCTS_ROWS][2 * PA_P_LANES] __attribute__((aligned(64))) = {{0}};
    const int64_t width = 2 * PA_P_LANES;
    for (int64_t p = 0; p < depth; p += PA_PRODUCTS_DEPTH) {
        const int64_t deep = depth - p < PA_PRODUCTS_DEPTH ? depth - p : PA_PRODUCTS_DEPTH;
        for (int64_t k = 0; k < deep; ++k)
            for (int64_t j = 0; j < width; ++j) {
                PA_NOVECTOR;
                panel[k][j] = j < columns ? b.at[(p + k) * b.rows + j * b.columns] : 0;
            }
        const PA_P(matrix) along = {a.at + p * a.columns, a.rows, a.columns};
        if (columns == width) {
            PA_P(strip)(c, pitch, along, panel[0], width, rows, deep, 2, 0, 0);
            continue;
        }
        for (int64_t i = 0; i < rows; i += PA_PRODUCTS_ROWS) {
            const int64_t high = rows - i < PA_PRODUCTS_ROWS ? rows - i : PA_PRODUCTS_ROWS;
            const PA_P(matrix) from = {along.at + i * a.rows, a.rows, a.columns};
            for (int64_t r = 0; r < high; ++r)
                for (int64_t j = 0; j < columns; ++j) {
                    PA_NOVECTOR;
                    part[r][j] = c[(i + r) * pitch + j];
                }
            PA_P(strip)(part[0], width, from, panel[0], width, high, deep, 2, 0, 0);
            for (int64_t r = 0; r < high; ++r)
                for (int64_t j = 0; j < columns; ++j) {
                    PA_NOVECTOR;
                    c[(i + r) * pitch + j] = part[r][j];
                }
        }
    }
}

/* C += A @ B; rows of C are `pitch` elements apart, and columns neighbours. Meanwhile `next` is prefetched, unless it
   is NULL. */
PA_PRODUCTS_APART void PA_P(add)(PA_P_T *c, int64_t pitch, PA_P(matrix) a, PA_P(matrix) b, int64_t rows,
                                 int64_t columns, int64_t depth, pa_prefetch_next *next)
{
    const int64_t width = 2 * PA_P_LANES, blocks = (rows / PA_PRODUCTS_ROWS) * (columns / width);
    const int64_t prefetched = blocks > 0 ? (pa_prefetch_count(next) + blocks - 1) / blocks : 0;
    int64_t j = 0;
    if (b.columns == 1) {
        for (; j + width <= columns; j += width)
            PA_P(strip)(c + j, pitch, a, b.at + j, b.rows, rows, depth, 2, next, prefetched);
        for (; j + PA_P_LANES <= columns; j += PA_P_LANES)
            PA_P(strip)(c + j, pitch, a, b.at + j, b.rows, rows, depth, 1, 0, 0);
    }
    for (; j < columns; j += width) {
        const PA_P(matrix) rest = {b.at + j * b.columns, b.rows, b.columns};
        PA_P(copied)(c + j, pitch, a, rest, rows, columns - j < width ? columns - j : width, depth);
    }
}

#undef PA_P
#undef PA_P_T
#undef PA_P_FMA
#undef PA_P_V
#undef PA_P_VU
#undef PA_P_LANES

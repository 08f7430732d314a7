/* pa_gemm_groups.h: the table of tiles of a product of groups of rows (pa_gemm_tiles.h), made by one block of
   PA_GROUP_THREADS: each takes a group, of which it counts the tiles, and then tiles of these groups. Included with
   PA_GEMM_TILE_ROWS, the rows of a tile, and PA_GEMM_ENDS, the type of ends. What is listed is inside in any case. */
#ifndef PA_GEMM_GROUPS_H
#define PA_GEMM_GROUPS_H
#include "pa_gemm_tiles.h"

enum { PA_GROUP_THREADS = 256 };

typedef struct pa_gemm_groups {
    pa_gemm_ends ends;
    pa_gemm_group_tile *tiles; /* the first one has how many follow, less than `room` */
    int64_t room;
} pa_gemm_groups;

PA_FN void pa_gemm_list_tiles(const pa_gemm_groups *g)
{
    __shared__ int64_t begins[PA_GROUP_THREADS], ends[PA_GROUP_THREADS], behind[PA_GROUP_THREADS];
    const int thread = (int)threadIdx.x;
    int64_t before = 1;
    for (int64_t first = 0; first <= g->ends.count; first += PA_GROUP_THREADS) {
        const int64_t group = first + thread;
        const int64_t begin = pa_gemm_group_end(&g->ends, group - 1), end = pa_gemm_group_end(&g->ends, group);
        begins[thread] = begin, ends[thread] = end;
        /* tiles up to the end of each group */
        behind[thread] = group <= g->ends.count && begin < end ? (end - begin - 1) / PA_GEMM_TILE_ROWS + 1 : 0;
        __syncthreads();
        for (int step = 1; step < PA_GROUP_THREADS; step *= 2) {
            const int64_t others = thread >= step ? behind[thread - step] : 0;
            __syncthreads();
            behind[thread] += others;
            __syncthreads();
        }
        const int64_t all = behind[PA_GROUP_THREADS - 1], left = g->room - before;
        for (int64_t i = thread; i < all && i < left; i += PA_GROUP_THREADS) {
            int low = 0, high = PA_GROUP_THREADS - 1; /* the first group that ends behind tile i */
            while (low < high) {
                const int middle = (low + high) / 2;
                if (behind[middle] <= i) low = middle + 1;
                else high = middle;
            }
            const int64_t own = i - (low ? behind[low - 1] : 0);
            const pa_gemm_group_tile tile = {begins[low] + own * PA_GEMM_TILE_ROWS, ends[low], first + low};
            g->tiles[before + i] = tile;
        }
        before += all < left ? all : left;
        __syncthreads(); /* before the next groups take their places */
    }
    if (thread == 0) g->tiles[0].row = before - 1;
}
#endif

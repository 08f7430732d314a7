/* pa_sort_passes_gpu.h: radix sort of long rows on a grid, one pass over memory per digit. A tile's offsets come from a
   chained scan with decoupled look-back over the tiles' counts: each tile publishes its aggregate first, then its
   inclusive prefix, in one word with a flag, so that no fence is needed. Tiles are numbered as they begin, so those
   before are running or done. A digit that is the same in a whole row is skipped, which the device alone decides. */
#ifndef PA_SORT_PASSES_GPU_H
#define PA_SORT_PASSES_GPU_H

PA_FN void pa_sort_clear(const pa_sort_grid *g)
{
    const int64_t step = (int64_t)gridDim.x * PA_S_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * PA_S_THREADS + threadIdx.x; i < g->work.size; i += step) g->work.at(i) = 0;
}

/* The digits of all passes are counted in one read. */
PA_FN void pa_sort_count(const pa_sort_grid *g)
{
    __shared__ unsigned counts[PA_S_PASSES * 256 * PA_S_COPIES];
    const int tid = (int)threadIdx.x, chunk = PA_S_THREADS * PA_S_IN_FLIGHT;
    const int64_t row = blockIdx.x / g->parts;
    for (int k = tid; k < PA_S_PASSES * 256 * PA_S_COPIES; k += PA_S_THREADS) counts[k] = 0;
    __syncthreads();
    for (int64_t first = blockIdx.x % g->parts * chunk + tid; first < g->n; first += g->parts * chunk) {
        PA_S_KEY v[PA_S_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < PA_S_IN_FLIGHT; ++k)
            if (first + k * PA_S_THREADS < g->n) v[k] = g->x.at(row * g->n + first + k * PA_S_THREADS);
#pragma unroll
        for (int k = 0; k < PA_S_IN_FLIGHT; ++k) {
            if (first + k * PA_S_THREADS >= g->n) break;
            const PA_S_KEY key = pa_sort_key(v[k]);
#pragma unroll
            for (int p = 0; p < PA_S_PASSES; ++p)
                atomicAdd(&counts[(p * 256 + pa_sort_digit(key, p)) * PA_S_COPIES + tid % PA_S_COPIES], 1u);
        }
    }
    __syncthreads();
    for (int p = 0; p < PA_S_PASSES; ++p) {
        pa_sort_word sum = 0;
        for (int k = 0; k < PA_S_COPIES; ++k) sum += counts[(p * 256 + tid) * PA_S_COPIES + k];
        if (sum) atomicAdd(&g->work.at(g->digit(row, p, tid)), sum);
    }
}

/* A block per row: counts become offsets, and it is decided what each pass does: 0, nothing; else 1, the source (x, the
   first or the second buffer of keys) in the next two bits, and whether it is the last one. */
PA_FN void pa_sort_plan(const pa_sort_grid *g)
{
    __shared__ pa_sort_word sums[PA_S_WARPS];
    const int64_t row = blockIdx.x;
    int moves = 0, from = 0;
    for (int p = 0; p < PA_S_PASSES; ++p) {
        pa_sort_word *bin = &g->work.at(g->digit(row, p, (int)threadIdx.x));
        const pa_sort_word count = *bin;
        if (!__syncthreads_or(count == (pa_sort_word)g->n)) moves |= 1 << p;
        *bin = pa_sort_exclusive_scan(count, sums);
    }
    if (threadIdx.x != 0) return;
    for (int p = 0, left = moves ? moves : 1; left; ++p, left >>= 1) {
        if (!(left & 1)) continue;
        g->work.at(g->step(row, p)) = (pa_sort_word)(1 | from << 1 | (left == 1) << 3);
        from = from == 1 ? 2 : 1;
    }
}

/* How many keys of the tiles before have this thread's digit; publishes the inclusive prefix. */
PA_FN pa_sort_word pa_sort_look_back(const pa_sort_grid *g, int pass, int64_t tile, int64_t first, unsigned total)
{
    const int d = (int)threadIdx.x;
    pa_sort_word sum = 0;
    int64_t t = tile - 1;
    while (t >= first) {
        pa_sort_word states[PA_S_LOOK_BACK];
#pragma unroll
        for (int k = 0; k < PA_S_LOOK_BACK; ++k) {
            const int64_t i = g->state(pass, t - k > first ? t - k : first, d);
            states[k] = g->work.inside(i) ? *(volatile pa_sort_word *)(g->work.data + i) : (pa_sort_word)PA_S_PREFIX;
        }
#pragma unroll
        for (int k = 0; k < PA_S_LOOK_BACK; ++k) {
            if (states[k] == 0) break;
            sum += states[k] >> 2;
            t = states[k] & PA_S_PREFIX ? first - 1 : t - 1;
            if (t < first) break;
        }
    }
    *(volatile pa_sort_word *)&g->work.at(g->state(pass, tile, d)) = (sum + total) << 2 | PA_S_PREFIX;
    return sum;
}

PA_FN void pa_sort_pass(const pa_sort_grid *g)
{
    __shared__ pa_sort_shared s;
    const int tid = (int)threadIdx.x;
    if (tid == 0) { /* divisions by one thread */
        const int64_t number = (int64_t)atomicAdd(&g->work.at(0), (pa_sort_word)1), tiles = g->rows * g->tiles;
        s.pass = (int)(number / tiles);
        s.tile = number - s.pass * tiles;
        s.row = s.tile / g->tiles;
    }
    __syncthreads();
    const int64_t tile = s.tile, row = s.row, first = row * g->tiles, begin = (tile - first) * PA_S_TILE;
    const int pass = s.pass;
    const int64_t base = row * g->n, all = g->rows * g->n;
    const int count = (int)(g->n - begin < PA_S_TILE ? g->n - begin : PA_S_TILE),
              step = (int)g->work.at(g->step(row, pass));
    if (step == 0) return;
    const int from = step >> 1 & 3;
    const bool last = step >> 3;
    const pa_sort_array<PA_S_KEY> in = from == 0 ? g->x : g->keys;
#if !PA_S_POSITIONS
    const pa_sort_array<PA_S_KEY> into = last ? g->out : g->keys;
#endif
    const int64_t source = (from == 2 ? all : 0) + base + begin, target = (from == 1 && !last ? all : 0) + base;
    PA_S_KEY key[PA_S_ITEMS];
    unsigned at[PA_S_ITEMS];
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_item_index(i);
        key[i] = (PA_S_KEY) ~(PA_S_KEY)0;
        if (t < count) key[i] = in.at(source + t);
    }
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i)
        if (from == 0 && pa_sort_item_index(i) < count) key[i] = pa_sort_key(key[i]);
    const auto digit = [&](int i) { return pa_sort_digit(key[i], pass); };
    const unsigned total = pa_sort_histogram(&s, digit);
    pa_sort_word before;
    if (tile != first) { /* the first tile starts from the digit's offset in the row */
        *(volatile pa_sort_word *)&g->work.at(g->state(pass, tile, tid)) = (pa_sort_word)total << 2 | PA_S_AGGREGATE;
    } else {
        before = g->work.at(g->digit(row, pass, tid));
        *(volatile pa_sort_word *)&g->work.at(g->state(pass, tile, tid)) = (before + total) << 2 | PA_S_PREFIX;
    }
    const unsigned start = pa_sort_rank_and_store(&s, total, digit, key, at);
    if (tile != first) before = pa_sort_look_back(g, pass, tile, first, total);
    s.before[tid] = before - start;
    __syncthreads();
    pa_sort_word to[PA_S_ITEMS];
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int j = i * PA_S_THREADS + tid;
        const PA_S_KEY moved = s.keys[j];
        to[i] = s.before[pa_sort_digit(moved, pass)] + (pa_sort_word)j;
#if PA_S_POSITIONS
        if (j < count && !last) g->keys.at(target + (int64_t)to[i]) = moved;
#else
        if (j < count) into.at(target + (int64_t)to[i]) = last ? pa_sort_value(moved) : moved;
#endif
    }
#if PA_S_POSITIONS
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_item_index(i);
        if (t < count)
            s.positions[at[i]] =
                (pa_sort_position)(from == 0 ? (pa_sort_word)(begin + t) : g->positions.at(source + t));
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int j = i * PA_S_THREADS + tid;
        if (j >= count) continue;
        if (last) g->out.at(base + (int64_t)to[i]) = (int64_t)s.positions[j];
        else g->positions.at(target + (int64_t)to[i]) = s.positions[j];
    }
#endif
}

#endif

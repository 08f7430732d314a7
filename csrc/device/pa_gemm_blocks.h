/* Loops over blocks, tiles and slices of a matrix product on CPUs, and the choice of their sizes. */

PA_GEMM_PLAN void PA_G(run_tasks)(pa_gemm_job *job, pa_block body, int64_t count, int parallel)
{
    if (parallel && count > 1) job->rt->parallel_for(job->rt, body, job, count, 1);
    else if (count > 0) body(job, 0, count);
}

/* Which operands are read in place: packing pays by the number of times that a panel is read. Rows of B at a distance
   of a large power of 2 would conflict in the caches. */
PA_GEMM_PLAN void PA_G(choose_in_place)(pa_gemm_job *job)
{
    (void)job;
#if PA_G_PAIRS
    /* its pairs are those of a panel */
    job->a_direct = job->cas == PA_G_ES && job->n <= PA_GEMM_A_IN_PLACE_PANELS * PA_G_NR && job->m >= PA_G_MR;
#elif PA_G_INPLACE && !defined(PA_DEBUG_CHECKS)
    const int a_fits = job->n <=
                       (job->cas == PA_G_ES ? PA_GEMM_A_IN_PLACE_PANELS : PA_GEMM_A_IN_PLACE_PANELS_STRIDED) * PA_G_NR;
    job->a_direct = a_fits && job->m >= PA_G_MR;
#if PA_G_PLAIN
    const int near = job->rbs >= -PA_GEMM_B_NEAR_BYTES && job->rbs <= PA_GEMM_B_NEAR_BYTES;
    const int far_panels = job->rbs % PA_GEMM_B_CONFLICT_BYTES ? PA_GEMM_B_IN_PLACE_PANELS_FAR : 0;
    const int b_fits = job->cbs == PA_G_ES && job->m <= (near ? PA_GEMM_B_IN_PLACE_PANELS_NEAR : far_panels) * PA_G_MR;
    /* a panel moved back lies inside */
    job->b_direct = b_fits && job->n >= (2 * pa_gemm_ceil(job->n, PA_G_L) <= PA_G_NRV ? PA_G_L : PA_G_NR);
#if PA_G_SMALL
    if (a_fits && b_fits && job->ccs == PA_G_ES && job->k <= PA_G_KC && !job->by_vector &&
        pa_gemm_work(job->m, job->n, job->k, 1) < PA_G_PARALLEL_WORK) {
        int64_t low, best = 0, rows = INT64_MAX;
        for (low = 0; low < 3 && low * PA_G_MR_LOW < job->m + PA_G_MR; low++) {
            int64_t high = pa_gemm_ceil(job->m - low * PA_G_MR_LOW, PA_G_MR);
            if (high > 0 && job->m < PA_G_MR) continue; /* too high */
            if (high >= 0 && high * PA_G_MR + low * PA_G_MR_LOW < rows)
                best = high, rows = high * PA_G_MR + low * PA_G_MR_LOW;
        }
        job->small = 1;
        job->high_steps = best;
    }
#endif
#endif
#endif
}

/* The blocking: of the depth, and so the order of sums, by sizes and strides alone; of tiles by the threads, too.
   Blocks bound the scratch memory: PA_BLOCK rows and columns, 4 * PA_BLOCK bytes of depth. */
PA_GEMM_PLAN void PA_G(plan_blocks)(pa_gemm_job *job)
{
    const pa_gemm_args *g = job->args;
    const int64_t kc = g->kc > 0 ? pa_gemm_min(g->kc, PA_G_KC) : PA_G_KC_DEFAULT;
    const int64_t mc = g->mc > 0 ? pa_gemm_ceil(g->mc, PA_G_MR) * PA_G_MR : PA_G_MC;
    const int64_t nc = g->nc > 0 ? pa_gemm_ceil(g->nc, PA_G_NR) * PA_G_NR : PA_G_NC;
    job->rows = pa_gemm_min(pa_gemm_ceil(job->m, PA_G_MR) * PA_G_MR, pa_gemm_ceil(PA_G_BLOCK, mc) * mc);
    job->cols = pa_gemm_min(pa_gemm_ceil(job->n, PA_G_NR) * PA_G_NR, pa_gemm_ceil(PA_G_BLOCK, nc) * nc);
    job->depth = pa_gemm_cut(job->k, pa_gemm_ceil(4 * PA_G_BLOCK / PA_G_WORD, kc) * kc, 4);
    job->kc = pa_gemm_cut(pa_gemm_min(job->depth, job->k), kc + kc / 32, 4);
    job->depth = pa_gemm_ceil(job->depth, job->kc) * job->kc;
    job->mc = pa_gemm_cut(job->rows, mc, PA_G_MR);
    job->nc = pa_gemm_cut(job->cols, nc, PA_G_NR);
    /* One row of tiles, if higher ones than usual: no panel of B is read by two tasks then. Only while A stays in L2
       and every thread has a few tiles. */
    job->b_private = !job->b_direct && job->m <= PA_G_BLOCK &&
                     (job->m <= 2 * mc || (job->rows * job->kc <= 2 * PA_G_MC * PA_G_KC_DEFAULT &&
                                           job->cols >= 4 * PA_G_NR * job->rt->threads));
    if (job->b_private) job->mc = job->rows;
    /* Enough tasks for many threads, as long as each pays for one. */
    while (pa_gemm_ceil(job->rows, job->mc) * pa_gemm_ceil(job->cols, job->nc) < PA_GEMM_MANY_TASKS &&
           pa_gemm_work(job->mc, job->nc, job->k, PA_G_PLANES) > PA_G_PARALLEL_WORK) {
        if (job->nc >= (job->b_private ? 2 : 8) * PA_G_NR && (job->b_private || job->nc >= job->mc))
            job->nc = pa_gemm_cut(job->nc, pa_gemm_ceil(job->nc, 2), PA_G_NR);
        else if (job->mc >= 8 * PA_G_MR && !job->b_private)
            job->mc = pa_gemm_cut(job->mc, pa_gemm_ceil(job->mc, 2), PA_G_MR);
        else
            break;
    }
    /* Load balance: a few large tiles are halved until the idle time is a tenth at most, though panels are packed
       twice. */
    while (job->b_private && job->mc >= 4 * PA_G_MR &&
           2 * pa_gemm_work(job->mc, job->nc, job->k, PA_G_PLANES) > PA_G_PARALLEL_WORK) {
        const int64_t count = pa_gemm_ceil(job->rows, job->mc) * pa_gemm_ceil(job->cols, job->nc),
                      threads = job->rt->threads;
        if (PA_GEMM_IMBALANCE_BUSY * count >= PA_GEMM_IMBALANCE_ALL * pa_gemm_ceil(count, threads) * threads) break;
        job->mc = pa_gemm_cut(job->mc, pa_gemm_ceil(job->mc, 2), PA_G_MR);
    }
    job->ma = job->b_private ? pa_gemm_cut(job->rows, pa_gemm_ceil(job->rows, 8), PA_G_MR) : job->mc;
    job->sai = job->a_direct ? job->ras : (int64_t)sizeof(PA_ACC);
    job->sak = job->a_direct ? PA_G_K_PER_WORD * job->cas : PA_G_MR * PA_G_WORD;
    job->sbk = job->b_direct ? job->rbs : PA_G_NR * PA_G_WORD;
    job->bytes_a = job->a_direct ? 0 : pa_gemm_ceil(job->rows * job->depth * PA_G_WORD, 64) * 64;
    job->bytes_b = job->b_direct || job->b_private ? 0 : pa_gemm_ceil(job->cols * job->depth * PA_G_WORD, 64) * 64;
    job->bytes = job->bytes_a + job->bytes_b +
                 (!PA_G_SUMS_IN_C && job->k > job->kc ? job->rows * job->cols * PA_G_WORD : 0);
}

/* Computes a planned product, in scratch memory unless it has a workspace. */
PA_GEMM_PLAN void PA_G(run_blocks)(pa_gemm_job *job, int parallel)
{
    char few[((PA_G_MR + PA_G_NR) * PA_G_KC + PA_G_MR * PA_G_NR) * PA_G_WORD + 128] __attribute__((aligned(64)));
    if (pa_gemm_work(job->m, job->n, job->k, PA_G_PLANES) < PA_G_PARALLEL_WORK) parallel = 0;
    if (!job->workspace && job->bytes) job->workspace = (char *)job->rt->scratch(job->rt, (size_t)job->bytes);
    if (!job->workspace && job->bytes) {
        /* Without memory: one panel at a time, slow but correct. */
        job->workspace = few;
        job->a_direct = job->b_direct = job->b_private = parallel = 0;
        job->sai = sizeof(PA_ACC), job->sak = PA_G_MR * PA_G_WORD, job->sbk = PA_G_NR * PA_G_WORD;
        job->rows = job->mc = job->ma = PA_G_MR, job->cols = job->nc = PA_G_NR, job->depth = job->kc = PA_G_KC;
        job->bytes_a = pa_gemm_ceil(PA_G_MR * PA_G_KC * PA_G_WORD, 64) * 64;
        job->bytes_b = pa_gemm_ceil(PA_G_NR * PA_G_KC * PA_G_WORD, 64) * 64;
    }
    job->pa = job->workspace, job->pb = job->workspace + job->bytes_a, job->acc = job->pb + job->bytes_b;
    for (job->i0 = 0; job->i0 < job->m; job->i0 += job->rows) {
        job->mb = pa_gemm_min(job->rows, job->m - job->i0);
        for (job->j0 = 0; job->j0 < job->n; job->j0 += job->cols) {
            job->nb = pa_gemm_min(job->cols, job->n - job->j0);
            for (job->p0 = 0; job->p0 < job->k; job->p0 += job->depth) {
                int64_t slices;
                job->kb = pa_gemm_min(job->depth, job->k - job->p0);
                slices = pa_gemm_ceil(job->kb, job->kc);
                job->pack_a = pa_gemm_ceil(job->mb, job->ma) * slices;
                if (job->a_direct || (job->j0 > 0 && job->depth >= job->k)) job->pack_a = 0; /* it is there already */
                PA_G(run_tasks)(job, PA_G(pack),
                                job->pack_a + (job->bytes_b ? pa_gemm_ceil(job->nb, job->nc) * slices : 0), parallel);
                PA_G(run_tasks)(job, PA_G(compute_tiles),
                                pa_gemm_ceil(job->mb, job->mc) * pa_gemm_ceil(job->nb, job->nc), parallel);
            }
        }
    }
}

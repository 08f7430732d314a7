// Kernels with a bug each, and without: what the executor has to find.
struct one { int *a; };
struct two { int *a, *b; };
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

__device__ int sum_of(int x, int width)
{
    for (int step = width / 2; step; step /= 2) x += __shfl_xor(x, step);
    return x;
}
KERNEL wave_sum(const two m)
{
    m.b[threadIdx.x] = sum_of(m.a[threadIdx.x], warpSize);
}
KERNEL wave_of_32(const two m) // as if every wave had 32 lanes
{
    m.b[threadIdx.x] = sum_of(m.a[threadIdx.x], 32);
}
KERNEL lane_40(const two m) // as if every wave had 64 lanes
{
    m.b[threadIdx.x] = __shfl(m.a[threadIdx.x], 40);
}
template <bool synchronized> __device__ void reversed(const two &m)
{
    __shared__ int tile[256];
    tile[threadIdx.x] = m.a[threadIdx.x];
    if (synchronized) __syncthreads();
    m.b[threadIdx.x] = tile[255 - threadIdx.x];
}
KERNEL with_barrier(const two m) { reversed<true>(m); }
KERNEL missing_barrier(const two m) { reversed<false>(m); }
KERNEL barrier_of_some(const two m)
{
    __shared__ int tile[256];
    tile[threadIdx.x] = m.a[threadIdx.x];
    if (__builtin_amdgcn_readfirstlane(threadIdx.x) < 128) __builtin_amdgcn_s_barrier();
    m.b[threadIdx.x] = tile[threadIdx.x];
}
KERNEL beyond_lds(const two m)
{
    extern __shared__ int dynamic[];
    dynamic[m.a[threadIdx.x]] = 1;
    m.b[threadIdx.x] = dynamic[threadIdx.x];
}
KERNEL beyond_global(const two m) { m.b[threadIdx.x + m.a[0]] = 1; }
KERNEL wrong_argument_offset(const two m) // the second pointer is at 8
{
    const auto arguments = (const __attribute__((address_space(4))) char *)__builtin_amdgcn_kernarg_segment_ptr();
    (*(int *const __attribute__((address_space(4))) *)(arguments + 4))[threadIdx.x] = m.a[threadIdx.x];
}
KERNEL before_global(const two m) { m.b[threadIdx.x] = m.a[(int)threadIdx.x - 1]; }
KERNEL unwritten_lds(const two m)
{
    __shared__ int tile[256];
    if (threadIdx.x < 100) tile[threadIdx.x] = m.a[threadIdx.x];
    __syncthreads();
    m.b[threadIdx.x] = tile[threadIdx.x];
}
KERNEL unwritten_index(const two m)
{
    __shared__ int tile[256];
    tile[threadIdx.x ^ 1] = m.a[threadIdx.x];
    if (m.a[0] == 12345) tile[300] = 1;
    __syncthreads();
    m.b[tile[threadIdx.x] & 255] = 1;
}
KERNEL unaligned_atomic(const two m) { atomicAdd((int *)((char *)m.b + 2), m.a[threadIdx.x]); }
__device__ const int table[64] = {1, 2, 3, 4, 5};
KERNEL to_constants(const two m)
{
    int *place = (int *)&table[m.a[threadIdx.x] & 63];
    asm volatile("" : "+v"(place)); // the compiler would see that nothing may be written there
    *place = 7;
    m.b[threadIdx.x] = *place;
}
KERNEL endless(const two m)
{
    while (__hip_atomic_load(m.a, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) >= 0) __builtin_amdgcn_s_sleep(1);
    m.b[0] = 1;
}
KERNEL racing(const two m)
{
    __shared__ int tile[256];
    tile[threadIdx.x & 31] = m.a[threadIdx.x];
    __syncthreads();
    m.b[threadIdx.x] = tile[threadIdx.x & 31];
}
KERNEL racing_globally(const two m) { m.b[threadIdx.x & 31] = m.a[threadIdx.x]; }
KERNEL beyond_scratch(const two m)
{
    int own[64];
    for (int k = 0; k < 64; ++k) own[(k * 7 + m.a[k]) & 63] = k;
    m.b[threadIdx.x] = own[m.a[threadIdx.x]];
}
KERNEL trapped(const two m)
{
    if (m.a[threadIdx.x] == 77) __builtin_trap();
    m.b[threadIdx.x] = 1;
}
KERNEL half_of_unwritten(const two m)
{
    int x;
    asm volatile("" : "=v"(x)); // what its register happens to have: only the low half is written
    x = __builtin_amdgcn_perm(m.a[threadIdx.x], x, 0x03020504);
    m.b[threadIdx.x] = (short)x;
}
typedef int i32x4 __attribute__((ext_vector_type(4)));
KERNEL part_of_a_vector(const two m) // of which the other words don't exist
{
    __shared__ i32x4 tile[64];
    if (threadIdx.x % 4 < 2) ((int *)tile)[threadIdx.x] = m.a[threadIdx.x];
    __syncthreads();
    i32x4 x = tile[threadIdx.x / 4];
    asm volatile("" : "+v"(x)); // the compiler would load two words
    m.b[threadIdx.x] = threadIdx.x % 2 ? x.y : x.x;
}
KERNEL copied(const two m) { m.b[threadIdx.x] = m.a[threadIdx.x]; }

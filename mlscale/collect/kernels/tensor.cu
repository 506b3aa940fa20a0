// n x n matrix product of FP16 with FP32 sums on tensor or matrix cores, a wave per 16 x 16 tile.
// CUDA: PTX's wmma, 32 lanes. HIP: CDNA's MFMA, 64 lanes. a is by rows, b by columns; n is a
// multiple of 16.
#ifdef TILE_PRODUCT
#define WAVE 32
#elif defined(__HIP__)
#define WAVE 64
#define TILE_SUM float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f}
typedef _Float16 Half4 __attribute__((ext_vector_type(4)));
typedef float Float4 __attribute__((ext_vector_type(4)));
static __device__ void add_tile(float *sum, const unsigned short *a, const unsigned short *b,
                                int n)
{
    int line = THREAD % 16, first = THREAD % 64 / 16 * 4;
    Half4 left, right;
    Float4 total;
    for (int i = 0; i < 4; i++) {
        left[i] = ((const _Float16 *)a)[line * n + first + i];
        right[i] = ((const _Float16 *)b)[line * n + first + i];
        total[i] = sum[i];
    }
    total = __builtin_amdgcn_mfma_f32_16x16x16f16(left, right, total, 0, 0, 0);
    for (int i = 0; i < 4; i++)
        sum[i] = total[i];
}
static __device__ void store_tile(float *out, const float *sum, int n)
{
    for (int i = 0; i < 4; i++)
        out[(THREAD % 64 / 16 * 4 + i) * n + THREAD % 16] = sum[i];
}
#else
#define WAVE 32
typedef struct { unsigned r[8]; } Half16x16;
static __device__ __forceinline__ void add_tile(float *sum, const unsigned short *a,
                                                const unsigned short *b, int n)
{
    Half16x16 left, right;
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
                 : "=r"(left.r[0]), "=r"(left.r[1]), "=r"(left.r[2]), "=r"(left.r[3]),
                   "=r"(left.r[4]), "=r"(left.r[5]), "=r"(left.r[6]), "=r"(left.r[7])
                 : "l"(__cvta_generic_to_global(a)), "r"(n) : "memory");
    asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.global.f16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
                 : "=r"(right.r[0]), "=r"(right.r[1]), "=r"(right.r[2]), "=r"(right.r[3]),
                   "=r"(right.r[4]), "=r"(right.r[5]), "=r"(right.r[6]), "=r"(right.r[7])
                 : "l"(__cvta_generic_to_global(b)), "r"(n) : "memory");
    asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11,%12,%13,%14,%15}, "
                 "{%16,%17,%18,%19,%20,%21,%22,%23}, {%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]),
                   "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7])
                 : "r"(left.r[0]), "r"(left.r[1]), "r"(left.r[2]), "r"(left.r[3]),
                   "r"(left.r[4]), "r"(left.r[5]), "r"(left.r[6]), "r"(left.r[7]),
                   "r"(right.r[0]), "r"(right.r[1]), "r"(right.r[2]), "r"(right.r[3]),
                   "r"(right.r[4]), "r"(right.r[5]), "r"(right.r[6]), "r"(right.r[7]));
}
static __device__ __forceinline__ void store_tile(float *out, const float *sum, int n)
{
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 "
                 "[%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;"
                 : : "l"(__cvta_generic_to_global(out)), "f"(sum[0]), "f"(sum[1]), "f"(sum[2]),
                   "f"(sum[3]), "f"(sum[4]), "f"(sum[5]), "f"(sum[6]), "f"(sum[7]), "r"(n)
                 : "memory");
}
#define TILE_SUM float sum[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}
#endif
ENTRY KERNEL(const unsigned short *a, const unsigned short *b, float *out, int n)
{
    int wave = (BLOCK * THREADS + THREAD) / WAVE, waves = BLOCKS * THREADS / WAVE, tiles = n / 16;
    for (int tile = wave; tile < tiles * tiles; tile += waves) {
        int row = tile / tiles * 16, column = tile % tiles * 16;
        TILE_SUM;
        for (int k = 0; k < n; k += 16)
            add_tile(sum, a + row * n + k, b + column * n + k, n);
        store_tile(out + row * n + column, sum, n);
    }
}

// Volkov's microbenchmark: each warp repeats a load and INTENSITY multiply-adds, every instruction
// dependent on the one before. one and zero are 1 and 0, which the compiler does not know.
extern "C" __global__ void KERNEL(const unsigned *next, unsigned *out, long long *start,
                                  long long *end, float one, float zero, int rounds)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned place = t;
    long long begin = clock64();
#pragma unroll 4
    for (int k = 0; k < rounds; k++) {
        place = __ldcg(next + place);
        float x = __uint_as_float(place);
#pragma unroll
        for (int a = 0; a < INTENSITY; a++)
            x = fmaf(x, one, zero);
        place = __float_as_uint(x);
    }
    asm volatile("" : : "r"(place) : "memory");
    long long finish = clock64();
    out[t] = place;
    if (threadIdx.x % 32 == 0) {
        start[t / 32] = begin;
        end[t / 32] = finish;
    }
}

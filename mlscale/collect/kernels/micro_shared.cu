// Throughput of shared memory: each warp of one block reads without conflicts; cycles of the block.
extern "C" __global__ void KERNEL(const unsigned *in, unsigned *out, long long *cycles, int rounds)
{
    __shared__ volatile unsigned words[1024];
    words[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    unsigned sum = 0;
    long long start = clock64();
    for (int k = 0; k < rounds; k++) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            sum += words[(threadIdx.x + 32 * j) & 1023];
    }
    asm volatile("" : : "r"(sum) : "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        cycles[0] = clock64() - start;
    out[threadIdx.x] = sum;
}

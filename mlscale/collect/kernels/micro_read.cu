// Throughput: all threads read a set (past the L1 cache) `sweeps` times, 32-byte sectors in full.
extern "C" __global__ void KERNEL(const unsigned *in, unsigned *out, unsigned words, int sweeps)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (int s = 0; s < sweeps; s++) {
#pragma unroll 8
        for (unsigned i = t; i < words; i += threads)
            sum += __ldcg(in + i);
    }
    out[t] = sum;
}

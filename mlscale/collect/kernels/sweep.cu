// All blocks read the same set of words again and again, so that it stays in the L2 cache.
extern "C" __global__ void KERNEL(const unsigned *in, unsigned *out, unsigned words, int sweeps)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (int s = 0; s < sweeps; s++)
        for (unsigned i = t; i < words; i += threads)
            sum += in[(i + s * 7919u * 32u) & (words - 1)];
    out[t] = sum;
}

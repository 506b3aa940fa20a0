// The lanes of a warp take WAYS different branches, one after another.
extern "C" __global__ void KERNEL(const unsigned *in, unsigned *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i], own = i % WAYS;
    for (unsigned way = 0; way < WAYS; way++) {
        if (own == way) {
            for (int k = 0; k < rounds; k++) {
                x = x * (1664525u + 2 * way) + 1013904223u;
                x ^= x >> 13;
            }
        }
    }
    out[i] = x;
}

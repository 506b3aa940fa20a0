// 32-bit integer arithmetic: multiply-adds, shifts and exclusive ors.
extern "C" __global__ void KERNEL(const unsigned *in, unsigned *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i];
    for (int k = 0; k < rounds; k++) {
        x = x * 1664525u + 1013904223u;
        x ^= x >> 13;
    }
    out[i] = x;
}

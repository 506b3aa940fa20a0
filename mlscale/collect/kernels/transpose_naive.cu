// n x n transposition; the writes of a warp are n words apart.
extern "C" __global__ void KERNEL(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * n)
        out[i % n * n + i / n] = in[i];
}

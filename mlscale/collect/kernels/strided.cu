// Reads a whole sector for one word of it: neighbouring threads read STRIDE words apart.
extern "C" __global__ void KERNEL(const float *in, float *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned rows = n / STRIDE;
    if (i < n)
        out[i] = in[(i % rows) * STRIDE + i / rows];
}

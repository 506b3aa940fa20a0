// Streaming: one read and one write per element.
extern "C" __global__ void KERNEL(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

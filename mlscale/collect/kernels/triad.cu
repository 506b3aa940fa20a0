// Streaming: two reads, a multiply-add and one write per element, in single or double precision.
extern "C" __global__ void KERNEL(const REAL *a, const REAL *b, REAL *out, REAL factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] + factor * b[i];
}

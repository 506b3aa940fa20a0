// n x n matrix product, an element per thread, operands from global memory.
extern "C" __global__ void KERNEL(const float *a, const float *b, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = i / n, column = i % n;
    if (row >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    out[i] = sum;
}

// Sparse matrix (compressed rows) times vector, a thread per row.
extern "C" __global__ void KERNEL(const int *begin, const int *column, const float *value,
                                  const float *x, float *out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = begin[row]; k < begin[row + 1]; k++)
        sum += value[k] * x[column[k]];
    out[row] = sum;
}

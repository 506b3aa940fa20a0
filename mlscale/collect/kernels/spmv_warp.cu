// Sparse matrix (compressed rows) times vector, a warp per row; blocks of 256 fill the rows.
extern "C" __global__ void KERNEL(const int *begin, const int *column, const float *value,
                                  const float *x, float *out, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0.0f;
    if (row < rows)
        for (int k = begin[row] + lane; k < begin[row + 1]; k += 32)
            sum += value[k] * x[column[k]];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (row < rows && lane == 0)
        out[row] = sum;
}

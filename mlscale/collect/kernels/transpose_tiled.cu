// n x n transposition by 32 x 32 tiles in shared memory; 256 threads; n is a multiple of 32.
extern "C" __global__ void KERNEL(const float *in, float *out, int n)
{
    __shared__ float tile[32][33];
    int tiles = n / 32, column = threadIdx.x % 32, row = threadIdx.x / 32;
    int left = blockIdx.x % tiles * 32, top = blockIdx.x / tiles * 32;
    for (int r = row; r < 32; r += 8)
        tile[r][column] = in[(top + r) * n + left + column];
    __syncthreads();
    for (int r = row; r < 32; r += 8)
        out[(left + r) * n + top + column] = tile[column][r];
}

// n x n matrix product by 16 x 16 tiles in shared memory; 256 threads; n is a multiple of 16.
extern "C" __global__ void KERNEL(const float *a, const float *b, float *out, int n)
{
    __shared__ float left[16][16], right[16][16];
    int tiles = n / 16, x = threadIdx.x % 16, y = threadIdx.x / 16;
    int row = blockIdx.x / tiles * 16 + y, column = blockIdx.x % tiles * 16 + x;
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; tile++) {
        left[y][x] = a[row * n + tile * 16 + x];
        right[y][x] = b[(tile * 16 + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    out[row * n + column] = sum;
}

// Sum of 16 x 256 elements per block: registers, then shuffles, then shared memory.
extern "C" __global__ void KERNEL(const float *in, float *out)
{
    __shared__ float of_warp[8];
    int first = blockIdx.x * 16 * 256 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 16; k++)
        sum += in[first + k * 256];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < 8; warp++)
            total += of_warp[warp];
        out[blockIdx.x] = total;
    }
}

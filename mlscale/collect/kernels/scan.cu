// Inclusive prefix sums of 512 elements per block, in shared memory, a barrier per doubling.
extern "C" __global__ void KERNEL(const int *in, int *out)
{
    __shared__ int sums[2][512];
    int i = threadIdx.x, from = 0;
    sums[0][i] = in[blockIdx.x * 512 + i];
    __syncthreads();
    for (int distance = 1; distance < 512; distance *= 2) {
        sums[1 - from][i] = sums[from][i] + (i >= distance ? sums[from][i - distance] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[blockIdx.x * 512 + i] = sums[from][i];
}

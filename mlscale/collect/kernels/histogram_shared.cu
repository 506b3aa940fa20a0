// 256 bins in shared memory, 16 x 256 elements per block, then added to the global bins.
extern "C" __global__ void KERNEL(const unsigned char *in, int *bins)
{
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    int first = blockIdx.x * 16 * 256 + threadIdx.x;
    for (int k = 0; k < 16; k++)
        atomicAdd(&own[in[first + k * 256]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

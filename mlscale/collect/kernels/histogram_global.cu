// Every element adds to a bin in global memory.
extern "C" __global__ void KERNEL(const int *in, int *bins, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&bins[in[i]], 1);
}

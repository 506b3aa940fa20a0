// Reads of shared memory STRIDE words apart: STRIDE-way bank conflicts for powers of two.
extern "C" __global__ void KERNEL(const unsigned *in, unsigned *out, int rounds)
{
    __shared__ unsigned words[2048];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned k = threadIdx.x; k < 2048; k += blockDim.x)
        words[k] = in[k];
    __syncthreads();
    unsigned sum = i;
    for (int k = 0; k < rounds; k++)
        sum += words[(threadIdx.x * STRIDE + k + (sum & 32)) & 2047];
    out[i] = sum;
}

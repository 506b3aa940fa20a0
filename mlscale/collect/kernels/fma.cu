// Chains of dependent multiply-adds: CHAINS of them independent in each thread.
extern "C" __global__ void KERNEL(const REAL *in, REAL *out, REAL factor, REAL summand, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    REAL x[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        x[c] = in[i] + (REAL)c;
    for (int k = 0; k < rounds; k++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            x[c] = x[c] * factor + summand;
    }
    REAL sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    out[i] = sum;
}

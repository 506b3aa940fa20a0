// Reads at random places of a table.
extern "C" __global__ void KERNEL(const float *table, const int *index, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = table[index[i]];
}

// Dependent loads: each thread follows its own way through a cycle of nodes 128 bytes apart.
extern "C" __global__ void KERNEL(const unsigned *next, const unsigned *start, unsigned *out,
                                  int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned node = start[i];
    for (int k = 0; k < steps; k++)
        node = next[node * 32];
    out[i] = node;
}

// Marks the multiprocessors that ran a block; each block stays long enough for all to be used.
extern "C" __global__ void KERNEL(int *used, long long cycles)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0)
        used[sm] = 1;
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

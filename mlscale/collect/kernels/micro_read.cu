// Throughput: all threads read a set `sweeps` times, eight loads of 16 bytes on their way at once.
ENTRY KERNEL(GLOBAL const UINT4 *in, GLOBAL unsigned *out, unsigned vectors, int sweeps)
{
    unsigned t = BLOCK * THREADS + THREAD, threads = BLOCKS * THREADS;
    unsigned sum = 0;
    for (int s = 0; s < sweeps; s++) {
        for (unsigned i = t; i < vectors; i += 8 * threads) {
            UINT4 loaded[8];
#pragma unroll
            for (int k = 0; k < 8; k++)
                loaded[k] = LOAD(in + i + k * threads);
#pragma unroll
            for (int k = 0; k < 8; k++)
                sum += loaded[k].x + loaded[k].y + loaded[k].z + loaded[k].w;
        }
    }
    out[t] = sum;
}

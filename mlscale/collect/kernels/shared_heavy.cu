// 44 KiB of shared memory for a block of 128 threads: few blocks fit, latency shows.
ENTRY KERNEL(GLOBAL const unsigned *in, GLOBAL unsigned *out, int rounds)
{
    SHARED unsigned words[11264];
    for (int k = THREAD; k < 11264; k += 128)
        words[k] = in[k];
    BARRIER();
    unsigned place = THREAD;
    for (int k = 0; k < rounds; k++)
        place = words[place] % 11264u;
    out[BLOCK * 128 + THREAD] = place;
}

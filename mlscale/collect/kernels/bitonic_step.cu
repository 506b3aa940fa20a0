// One compare-and-exchange step of a bitonic network over global memory; a pair per thread.
ENTRY KERNEL(GLOBAL const int *in, GLOBAL int *out, int pairs, int run, int distance)
{
    int t = BLOCK * THREADS + THREAD;
    if (t >= pairs)
        return;
    int low = 2 * t - (t & (distance - 1)), high = low + distance;
    bool rising = (low & run) == 0;
    int a = in[low], b = in[high];
    bool exchange = (a > b) == rising;
    out[low] = exchange ? b : a;
    out[high] = exchange ? a : b;
}

// Each block sorts 1024 elements in shared memory by a bitonic network; 512 threads.
ENTRY KERNEL(GLOBAL const int *in, GLOBAL int *out)
{
    SHARED int keys[1024];
    int t = THREAD, first = BLOCK * 1024;
    keys[t] = in[first + t];
    keys[t + 512] = in[first + t + 512];
    for (int run = 2; run <= 1024; run *= 2) {
        for (int distance = run / 2; distance > 0; distance /= 2) {
            BARRIER();
            int low = 2 * t - (t & (distance - 1)), high = low + distance;
            bool rising = (low & run) == 0;
            int a = keys[low], b = keys[high];
            if ((a > b) == rising) {
                keys[low] = b;
                keys[high] = a;
            }
        }
    }
    BARRIER();
    out[first + t] = keys[t];
    out[first + t + 512] = keys[t + 512];
}

// Loops of unequal length: the steps of n -> n/2 or 3n + 1 down to 1.
ENTRY KERNEL(GLOBAL int *out, int n)
{
    int i = BLOCK * THREADS + THREAD;
    if (i >= n)
        return;
    ULONG x = i + 1;
    int steps = 0;
    while (x != 1) {
        x = x % 2 ? 3 * x + 1 : x / 2;
        steps++;
    }
    out[i] = steps;
}

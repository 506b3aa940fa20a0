// Latency: one thread follows a cycle through memory.
ENTRY KERNEL(GLOBAL const unsigned *next, GLOBAL const unsigned *start, GLOBAL unsigned *out,
             int steps)
{
    unsigned place = start[0];
    for (int k = 0; k < steps; k++)
        place = LOAD(next + place);
    out[0] = place;
}

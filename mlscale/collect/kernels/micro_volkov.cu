// Volkov's microbenchmark: each warp repeats a load and INTENSITY multiply-adds, every instruction
// dependent on the one before. one and zero are 1 and 0, which the compiler does not know. A place
// is kept as the bits of a number near 1, which 1 x + 0 leaves as they are.
ENTRY KERNEL(GLOBAL const unsigned *next, GLOBAL unsigned *out, float one, float zero, int rounds)
{
    unsigned t = BLOCK * THREADS + THREAD, place = t;
#pragma unroll 4
    for (int k = 0; k < rounds; k++) {
        float x = AS_FLOAT(LOAD(next + place));
#pragma unroll
        for (int a = 0; a < INTENSITY; a++)
            x = FMA(x, one, zero);
        place = AS_BITS(x) - 0x3f800000u;
    }
    out[t] = place;
}

// Gravity of all bodies (x, y, z, mass) on each, by tiles of 256 in shared memory.
ENTRY KERNEL(GLOBAL const float *bodies, GLOBAL float *out, int n)
{
    SHARED float tile[4 * 256];
    int i = BLOCK * 256 + THREAD;
    float px = bodies[4 * i], py = bodies[4 * i + 1], pz = bodies[4 * i + 2];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int first = 0; first < n; first += 256) {
        for (int k = 0; k < 4; k++)
            tile[k * 256 + THREAD] = bodies[4 * first + k * 256 + THREAD];
        BARRIER();
        for (int j = 0; j < 256; j++) {
            float dx = tile[4 * j] - px, dy = tile[4 * j + 1] - py, dz = tile[4 * j + 2] - pz;
            float inverse = RSQRT(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[4 * j + 3] * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        BARRIER();
    }
    out[3 * i] = ax;
    out[3 * i + 1] = ay;
    out[3 * i + 2] = az;
}

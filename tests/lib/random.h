/* Numbers for property tests: the same on every machine for the same seed (splitmix64). */
#ifndef LT_TESTS_RANDOM_H
#define LT_TESTS_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t seed; /* any value */
};

static inline uint64_t random_u64(struct random *r)
{
    uint64_t z = (r->seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 .. n-1, n > 0; the bias of the remainder does not matter here. */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
    return random_u64(r) % n;
}

#endif

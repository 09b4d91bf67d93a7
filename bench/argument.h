/* A number from the command line of a bench program. */
#ifndef LT_BENCH_ARGUMENT_H
#define LT_BENCH_ARGUMENT_H

#include <string.h>

#include "base/units.h"

/* -1 when it is none, or not within min..max. */
static inline int argument_int(const char *s, int min, int max)
{
    int64_t n;

    return units_int(s, strlen(s), &n) || n < min || n > max ? -1 : (int)n;
}

#endif

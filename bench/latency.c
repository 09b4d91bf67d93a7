/* How long mmap + first touch + munmap takes in a process of SIZE_MB touched 4 KiB pages: who holds its mmap lock shows here.
 *
 *     bench-latency SIZE_MB      "ready PID", then for each line "run SECONDS" on stdin one line of JSON:
 *         {"n":, "p50_us":, "p99_us":, "p999_us":, "max_us":}
 *
 * One mapping every 100 us. While one is stuck, those that would have come meanwhile are counted with the wait they would
 * have had: a stall of 13 ms is 130 slow mappings to a busy program, not one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "argument.h"
#include "base/clock.h"

/* Log-linear histogram of ns: 32 cells an octave, so a quantile is exact to 3 %. */
#define SUB 32
#define CELLS (SUB * 40)
#define EVERY_NS 100000

static uint64_t cells[CELLS];

static size_t cell_of(uint64_t ns)
{
    if (ns < SUB)
        return (size_t)ns;
    unsigned top = 63U - (unsigned)__builtin_clzll(ns);
    size_t cell = (size_t)(top - 4) * SUB + (size_t)(ns >> (top - 5)) - SUB;
    return cell < CELLS ? cell : CELLS - 1;
}

static uint64_t ns_of(size_t cell)
{
    if (cell < SUB)
        return cell;
    unsigned top = (unsigned)(cell / SUB) + 4;
    return (uint64_t)(cell % SUB + SUB) << (top - 5);
}

static double quantile_us(double q, uint64_t n)
{
    uint64_t want = (uint64_t)((double)n * q), seen = 0;

    for (size_t i = 0; i < CELLS; i++) {
        seen += cells[i];
        if (seen > want)
            return (double)ns_of(i) / 1000;
    }
    return 0;
}

static int64_t one_mapping(void)
{
    int64_t begin = clock_mono_ns();
    char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return 0;
    *(volatile char *)p = 1;
    munmap(p, 65536);
    return clock_mono_ns() - begin;
}

static uint64_t record(int64_t took)
{
    uint64_t n = 0;

    for (int64_t waited = took; n == 0 || waited > 0; waited -= EVERY_NS) {
        cells[cell_of((uint64_t)waited)]++;
        n++;
    }
    return n;
}

static void run(double seconds)
{
    static const struct timespec pause_for = { 0, EVERY_NS };
    int64_t until = clock_mono_ns() + (int64_t)(seconds * 1e9), max = 0;
    uint64_t n = 0;

    memset(cells, 0, sizeof cells);
    while (clock_mono_ns() < until) {
        int64_t took = one_mapping();
        n += record(took);
        if (took > max)
            max = took;
        nanosleep(&pause_for, NULL);
    }
    printf("{\"n\":%" PRIu64 ",\"p50_us\":%.2f,\"p99_us\":%.2f,\"p999_us\":%.2f,\"max_us\":%.2f}\n", n, quantile_us(.5, n),
           quantile_us(.99, n), quantile_us(.999, n), (double)max / 1000);
    fflush(stdout);
}

static int touch(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return -1;
    madvise(p, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096)
        p[i] = 1;
    return 0;
}

int main(int argc, char **argv)
{
    char line[64];
    double seconds;
    int size_mb;

    if (argc != 2 || (size_mb = argument_int(argv[1], 1, 65536)) < 0) {
        fprintf(stderr, "usage: bench-latency SIZE_MB\n");
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1000);
    if (touch((size_t)size_mb << 20) < 0) {
        fprintf(stderr, "bench-latency: %s MB: %s\n", argv[1], strerror(errno));
        return 3;
    }
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, "run %lf", &seconds) == 1)
            run(seconds);
    return 0;
}

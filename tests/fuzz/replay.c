/* Runs a harness without libFuzzer: replay CORPUS-FOLDER. Every seed as it is, then a fixed number of mutations of each
 * (the same on every run), then bytes out of nothing. Ends with the harness's line, so that the runner counts it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "fuzz/fuzz.h"
#include "lib/random.h"

#define INPUT_MAX 65536
#define MUTATIONS 2000
#define FROM_NOTHING 2000

static size_t mutate(struct random *r, uint8_t *data, size_t size)
{
    for (uint64_t n = 1 + random_below(r, 4); n; n--) {
        size_t at = size ? random_below(r, size) : 0;

        switch (random_below(r, 5)) {
        case 0: /* flip a bit */
            if (size)
                data[at] = (uint8_t)(data[at] ^ (1U << random_below(r, 8)));
            break;
        case 1: /* any byte */
            if (size)
                data[at] = (uint8_t)random_u64(r);
            break;
        case 2: /* cut */
            size = at;
            break;
        case 3: /* one byte less in the middle */
            if (size)
                memmove(data + at, data + at + 1, --size - at);
            break;
        default: /* one more of what parsers look for */
            if (size < INPUT_MAX) {
                memmove(data + at + 1, data + at, size++ - at);
                data[at] = (uint8_t)"0123456789-+.,:;eE \n\r\"'{}[]=#%\xff\x80"[random_below(r, 33)];
            }
        }
    }
    return size;
}

/* The input in a block of exactly its size: a sanitizer then sees the first byte read past it. */
static int feed(const uint8_t *data, size_t size)
{
    uint8_t *exact = mem_alloc(size);
    int r;

    if (!exact)
        return 1;
    memcpy(exact, data, size);
    r = LLVMFuzzerTestOneInput(exact, size);
    mem_free(exact);
    return r;
}

static int replay_seed(int folder, const char *name, struct random *rnd)
{
    static uint8_t seed[INPUT_MAX + 1], work[INPUT_MAX + 1];
    ssize_t size = fd_read_at(folder, name, (char *)seed, sizeof seed);
    int failed;

    if (size < 0) {
        fprintf(stderr, "replay: %s: %s\n", name, strerror((int)-size));
        return 1;
    }
    failed = feed(seed, (size_t)size);
    for (int i = 0; i < MUTATIONS; i++) {
        memcpy(work, seed, (size_t)size);
        failed |= feed(work, mutate(rnd, work, (size_t)size));
    }
    return failed;
}

int main(int argc, char **argv)
{
    DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
    struct random rnd = { 1 };
    struct dirent *e;
    int64_t live = mem_live_blocks();
    size_t seeds = 0, failed = 0;

    if (!d) {
        fprintf(stderr, "usage: replay CORPUS-FOLDER\n");
        return 2;
    }
    while ((e = readdir(d)))
        if (e->d_name[0] != '.') {
            failed += replay_seed(dirfd(d), e->d_name, &rnd) != 0;
            seeds++;
        }
    closedir(d);
    for (int i = 0; i < FROM_NOTHING; i++) {
        uint8_t data[64];
        size_t size = random_below(&rnd, sizeof data);

        for (size_t k = 0; k < size; k++)
            data[k] = (uint8_t)random_u64(&rnd);
        failed += feed(data, size) != 0;
    }
    if (mem_live_blocks() != live) {
        fprintf(stderr, "replay: %lld heap block(s) left behind\n", (long long)(mem_live_blocks() - live));
        failed++;
    }
    printf("%zu seeds\n", seeds);
    printf("harness: %d passed, %d failed\n", !failed && seeds, failed || !seeds);
    return failed || !seeds;
}

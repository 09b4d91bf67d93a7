/* The floors of a watched target, read back from its store: does what rose come down again?
 *
 *     bench-floor STORE TARGET      one line of JSON: the 10th percentile of eight equal parts of the span, for a few series
 *
 * Only the life with the most samples is read: a restart would bring the floor back by itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/store.h"

#define PARTS 8
#define POINTS_MAX 100000

static const enum metric_id watched[] = { METRIC_RSS_ANON, METRIC_RSS, METRIC_FDS, METRIC_THREADS };
#define NWATCHED (sizeof watched / sizeof watched[0])

static int64_t values[NWATCHED][POINTS_MAX];
static size_t npoints;
static struct life_row longest;

static int keep_longest(void *ctx, const struct life_row *row)
{
    (void)ctx;
    if (row->info.key.pid && row->samples > longest.samples)
        longest = *row;
    return 0;
}

static int keep_point(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    (void)ctx;
    (void)p;
    if (npoints == POINTS_MAX)
        return LT_ELIMIT;
    for (size_t i = 0; i < NWATCHED; i++)
        values[i][npoints] = v[watched[i]].last;
    npoints++;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_floors(size_t series)
{
    size_t part = npoints / PARTS;

    printf(",\"%s\":[", metrics[watched[series]].name);
    for (size_t i = 0; i < PARTS; i++) {
        int64_t *v = values[series] + i * part;
        qsort(v, part, sizeof *v, by_value);
        printf("%s%" PRId64, i ? "," : "", v[part / 10]);
    }
    printf("]");
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    struct store *s;
    int64_t target;

    if (argc != 3) {
        fprintf(stderr, "usage: bench-floor STORE TARGET\n");
        return 2;
    }
    if (store_open(&s, argv[1], STORE_READ, NULL, &err) < 0) {
        fprintf(stderr, "bench-floor: %s\n", err.text);
        return 3;
    }
    if (store_find_target(s, argv[2], &target, &err) < 0 ||
        store_each_life(s, target, INT64_MIN, INT64_MAX, keep_longest, NULL, &err) < 0 ||
        store_each_point(s, longest.id, INT64_MIN, INT64_MAX, 0, keep_point, NULL, &err) < 0 || npoints < PARTS * 10) {
        fprintf(stderr, "bench-floor: %s\n", *err.text ? err.text : "not enough samples");
        store_close(s, NULL);
        return 3;
    }
    printf("{\"samples\":%zu", npoints);
    for (size_t i = 0; i < NWATCHED; i++)
        print_floors(i);
    printf("}\n");
    return store_close(s, NULL) < 0 ? 3 : 0;
}

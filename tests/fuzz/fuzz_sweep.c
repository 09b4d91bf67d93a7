/* sweep_read: never past the end; ids ascend and are wanted ones; values are measured or METRIC_NA; what was read is written
 * and read back the same. */
#include <string.h>

#include "base/buf.h"
#include "fuzz/fuzz.h"
#include "store/sweep.h"

#define LIVES 64

struct seen { size_t n; int64_t id[LIVES], v[LIVES][METRIC_N], last; };

static int64_t *slot(void *ctx, int64_t id)
{
    struct seen *s = ctx;
    FUZZ_PROMISE(id >= 0 && id > s->last);
    s->last = id;
    if (s->n == LIVES)
        return NULL;
    memset(s->v[s->n], 0xff, sizeof s->v[0]); /* METRIC_NA */
    s->id[s->n] = id;
    return s->v[s->n];
}

static int row(void *ctx, int64_t id, const int64_t *v)
{
    struct seen *s = ctx;
    FUZZ_PROMISE(id == s->id[s->n] && v == s->v[s->n]);
    for (int m = 0; m < METRIC_N; m++)
        FUZZ_PROMISE(v[m] >= METRIC_NA);
    s->n++;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct seen first, again;
    static uint8_t rows[SWEEP_GROUP * SWEEP_ROW_MAX];
    int64_t blank[METRIC_N];
    _cleanup_buf_ struct buf b;
    struct sweep_writer w;
    struct sweep_reader r = {&first, slot, row, 0, INT64_MAX};
    buf_init(&b, 1 << 20);
    first.n = again.n = 0;
    first.last = again.last = -1;
    memset(blank, 0xff, sizeof blank);
    if (sweep_read(&r, data, size))
        return 0;
    FUZZ_PROMISE(sweep_begin(&w, &b, SWEEP_KEY, rows) == 0);
    for (size_t i = 0; i < first.n; i++)
        FUZZ_PROMISE(sweep_row(&w, first.id[i], first.v[i], blank) == 0);
    FUZZ_PROMISE(sweep_end(&w) == 0);
    r.ctx = &again;
    FUZZ_PROMISE(sweep_read(&r, (const uint8_t *)b.p, b.len) == 0 && again.n == first.n);
    FUZZ_PROMISE(!memcmp(again.id, first.id, first.n * sizeof first.id[0]) && !memcmp(again.v, first.v, first.n * sizeof first.v[0]));
    return 0;
}

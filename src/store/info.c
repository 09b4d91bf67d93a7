/* Sizes and counts of a store, for `store info` and `status`. */
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "store/parts.h"

#define DAY_NS (INT64_C(24) * 3600 * NS_PER_S)

void config_defaults(struct store_config *c)
{
    c->disk_budget_bytes = c->disk_budget_bytes ? MAX(c->disk_budget_bytes, (int64_t)BUDGET_MIN) : INT64_C(256) << 20;
    /* The queue is written in one go and must fit beside what is there. */
    int64_t queue = c->queue_max_bytes ? c->queue_max_bytes : INT64_C(8) << 20;
    c->queue_max_bytes = MIN(queue, c->disk_budget_bytes / 8);
    c->raw_keep_ns = c->raw_keep_ns ? c->raw_keep_ns : 14 * DAY_NS;
    c->tier1_keep_ns = c->tier1_keep_ns ? c->tier1_keep_ns : 90 * DAY_NS;
    c->tier2_keep_ns = c->tier2_keep_ns ? c->tier2_keep_ns : 730 * DAY_NS;
}

int64_t file_bytes(const struct store *s, const char *suffix)
{
    char path[4200];
    struct stat st;
    str_fmt(path, sizeof path, "%s%s", s->path, suffix);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static int read_counts(struct store *s, struct store_info *i, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open_n(&r, s, STMT_COUNTS, TABLE_NONE, NULL, 0, err);
    if (!rc)
        rc = rows_next(&r, err);
    if (rc < 0)
        return rc;
    i->targets = (uint64_t)rows_int(&r, 0);
    i->lives = (uint64_t)rows_int(&r, 1);
    i->events = (uint64_t)rows_int(&r, 2);
    i->gaps = (uint64_t)rows_int(&r, 3);
    i->request_rows = (uint64_t)rows_int(&r, 4);
    i->histogram_rows = (uint64_t)rows_int(&r, 5);
    i->sweeps = (uint64_t)rows_int(&r, 6);
    return 0;
}

static int read_tiers(struct store *s, struct store_info *i, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    for (int t = 0; t < 3; t++)
        i->tier[t].from_ns = i->tier[t].to_ns = CLOCK_INVALID;
    int rc = rows_open(&r, s, STMT_CHUNK_ALL, TABLE_CHUNK, err, VI(0));
    while (!rc && (rc = rows_next(&r, err)) == 1) {
        int64_t tier = rows_int(&r, 2), from = rows_int(&r, 3);
        rc = chunk_head(s, &r, err);
        if (rc && rc != LT_ECORRUPT)
            return rc;
        bool sound = !rc && tier >= 0 && tier < 3;
        rc = 0;
        if (!sound)
            continue;
        int64_t to = from + s->view->span_ms;
        i->tier[tier].chunks++;
        i->tier[tier].samples += s->view->n;
        i->tier[tier].values += chunk_values(s->view);
        i->tier[tier].bytes += s->view->len;
        if (i->tier[tier].from_ns == CLOCK_INVALID || ns_of(from) < i->tier[tier].from_ns)
            i->tier[tier].from_ns = ns_of(from);
        i->tier[tier].to_ns = MAX(i->tier[tier].to_ns, ns_of(to));
    }
    return rc;
}

static int read_info(struct store *s, struct store_info *i, struct err *err)
{
    memset(i, 0, sizeof *i);
    i->file_bytes = file_bytes(s, "");
    i->wal_bytes = file_bytes(s, "-wal");
    i->budget_bytes = s->config.disk_budget_bytes;
    i->schema_version = schema_version;
    i->watcher_pid = lock_holder(s->path);
    int rc = db_begin(s, false, err);
    if (rc)
        return rc;
    rc = read_counts(s, i, err);
    if (!rc)
        rc = read_tiers(s, i, err);
    db_end(s, true, NULL);
    return rc;
}

int store_info(struct store *s, struct store_info *ret, struct err *err)
{
    int rc;
    do
        rc = read_info(s, ret, err);
    while (salvage_after(s, &rc, false, err));
    return rc;
}

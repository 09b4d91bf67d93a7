/* What the watcher put and store_commit has not written yet: records in one bounded buffer, oldest first. When it is full
 * (the disk is full and has been for a while) the oldest sweeps and histograms go, and what went is recorded as a gap;
 * beginnings and ends of lives stay. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define GAPS_MAX 10000

struct record { uint32_t len; uint32_t type; }; /* then len bytes */

void queue_init(struct queue *q, int64_t max_bytes)
{
    *q = (struct queue){.max = (size_t)max_bytes};
    buf_init(&q->records, q->max);
}

void queue_clear(struct queue *q)
{
    buf_clear(&q->records);
    q->dropped = 0;
}

static void note_dropped(struct queue *q, int64_t ts_ms)
{
    if (!q->dropped++)
        q->dropped_from_ms = ts_ms;
    q->dropped_to_ms = ts_ms;
}

/* Frees at least `want` bytes by dropping sweeps and histograms from the front. A sweep cannot be read without those
 * before it, so once one goes, all up to the next key go. True when that reached the end of the queue: the next sweep
 * then has nothing to differ from. */
static bool make_room(struct queue *q, size_t want)
{
    size_t at = 0, keep = 0, freed = 0;
    char *p = q->records.p;
    bool chain_cut = false;
    while (at < q->records.len) {
        struct record head;
        memcpy(&head, p + at, sizeof head);
        size_t size = sizeof head + head.len;
        bool drop = freed < want && head.type == RECORD_HIST;
        if (head.type == RECORD_SWEEP) {
            int64_t ts;
            memcpy(&ts, p + at + sizeof head, sizeof ts);
            bool key = p[at + sizeof head + sizeof ts] == SWEEP_KEY;
            drop = freed < want || (chain_cut && !key);
            chain_cut = drop;
            if (drop)
                note_dropped(q, ts);
        }
        if (!drop) {
            memmove(p + keep, p + at, size);
            keep += size;
        } else {
            freed += size;
        }
        at += size;
    }
    q->records.len = keep;
    if (keep < at)
        p[keep] = '\0';
    return chain_cut;
}

int queue_put(struct store *s, enum record_type type, const void *a, size_t alen, const void *b, size_t blen, struct err *err)
{
    struct queue *q = &s->w.queue;
    struct record head = {.len = (uint32_t)(alen + blen), .type = type};
    size_t size = sizeof head + alen + blen;
    if (q->records.len + size > q->max && make_room(q, MAX(q->max / 8, size))) /* an eighth, or every sweep would move it all */
        s->w.since_key = SWEEP_KEY_EVERY;
    if (type == RECORD_SWEEP && s->w.since_key >= SWEEP_KEY_EVERY && *(const char *)b != SWEEP_KEY)
        return LT_TORN; /* the sweep it differs from has just gone */
    int rc = buf_reserve(&q->records, size);
    if (rc)
        return err_set(err, rc, "store %s: the queue in memory is full; make room on the disk", s->path);
    buf_append(&q->records, &head, sizeof head); /* reserved: cannot fail */
    buf_append(&q->records, a, alen);
    return buf_append(&q->records, b, blen);
}

/* ---- writing ---- */

static int write_life(struct store *s, const char *p, struct err *err)
{
    struct life_full full;
    int64_t id;
    struct life_info info;
    memcpy(&id, p, sizeof id);
    memcpy(&info, p + sizeof id, sizeof info);
    int rc = life_lookup(s, id, &full, err);
    if (rc < 0)
        return rc;
    full.info = info;
    full.end = (struct life_end){.cause = LIFE_RUNNING};
    return life_write(s, &full, err);
}

static int write_life_end(struct store *s, const char *p, size_t len, struct err *err)
{
    struct life_full full;
    struct summary sum;
    struct life_end end;
    int64_t id;
    memcpy(&id, p, sizeof id);
    memcpy(&end, p + sizeof id, sizeof end);
    struct cursor c = {.p = (const uint8_t *)p + sizeof id + sizeof end, .len = len - sizeof id - sizeof end};
    summary_get(&c, &sum);
    int rc = life_lookup(s, id, &full, err);
    if (rc <= 0) /* its row was lost to damage: nothing to end */
        return rc;
    full.end = end;
    full.sum = sum;
    full.upto_seq = s->w.next_seq - 1;
    return life_write(s, &full, err);
}

static int write_sweep(struct store *s, const char *p, size_t len, struct err *err)
{
    int64_t ts;
    memcpy(&ts, p, sizeof ts);
    int rc = db_put(s, STMT_SWEEP_PUT, TABLE_SWEEP, err, VI(s->w.next_seq), VI(ts), VB(p + sizeof ts, len - sizeof ts));
    if (!rc)
        s->w.next_seq++;
    return rc;
}

static int write_gap(struct store *s, int64_t from_ms, int64_t to_ms, const char *why, struct err *err)
{
    int64_t last;
    int rc = db_number(s, STMT_GAP_LAST, &last, err);
    if (!rc)
        rc = db_put(s, STMT_GAP_PUT, TABLE_GAP, err, VI(last + 1), VI(from_ms), VI(to_ms), VT(why));
    return rc || last < GAPS_MAX ? rc : db_run(s, STMT_GAP_TRIM, err, VI(GAPS_MAX));
}

static int write_record(struct store *s, struct hist_batch *batch, uint32_t type, const char *p, size_t len, struct err *err)
{
    int64_t span[2];
    struct hist_record hist;
    switch (type) {
    case RECORD_LIFE:
        return write_life(s, p, err);
    case RECORD_LIFE_END:
        return write_life_end(s, p, len, err);
    case RECORD_SWEEP:
        return write_sweep(s, p, len, err);
    case RECORD_HIST: {
        const char *what = p + sizeof hist;
        memcpy(&hist, p, sizeof hist);
        return hist_add(batch, &hist, what, what + strlen(what) + 1, err);
    }
    default:
        memcpy(span, p, sizeof span);
        return write_gap(s, span[0], span[1], p + sizeof span, err);
    }
}

int queue_write(struct store *s, struct err *err)
{
    struct queue *q = &s->w.queue;
    struct hist_batch batch = {.s = s};
    int rc = 0;
    if (q->dropped) {
        char why[96];
        str_fmt(why, sizeof why, "the disk was full: %llu sweeps lost", (unsigned long long)q->dropped);
        rc = write_gap(s, q->dropped_from_ms, q->dropped_to_ms, why, err);
    }
    for (size_t at = 0; at < q->records.len && !rc;) {
        struct record head;
        memcpy(&head, q->records.p + at, sizeof head);
        rc = write_record(s, &batch, head.type, q->records.p + at + sizeof head, head.len, err);
        at += sizeof head + head.len;
    }
    if (!rc)
        rc = hist_flush(&batch, err);
    vec_release(&batch.keys);
    return rc;
}

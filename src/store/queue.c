/* What the watcher put and store_commit has not written yet: records in one bounded buffer, oldest first. When it is full
 * (the disk is full and has been for a while) the oldest sweeps and histograms go, then lives that both began and ended in it,
 * and what went is recorded as a gap. Beginnings of lives that run, and ends of lives the store knows, stay. */
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
    q->lost = false;
    q->lost_sweeps = q->lost_lives = 0;
}

/* What is lost becomes one gap. */
static void note_lost(struct queue *q, int64_t from_ms, int64_t to_ms)
{
    q->lost_from_ms = q->lost ? MIN(q->lost_from_ms, from_ms) : from_ms;
    q->lost_to_ms = q->lost ? MAX(q->lost_to_ms, to_ms) : to_ms;
    q->lost = true;
}

void queue_lost_sweep(struct queue *q, int64_t ts_ms)
{
    note_lost(q, ts_ms, ts_ms);
    q->lost_sweeps++;
}

/* Moves what stays to the front. */
static void keep(struct queue *q, size_t *to, size_t from, size_t size)
{
    memmove(q->records.p + *to, q->records.p + from, size);
    *to += size;
}

static void cut(struct queue *q, size_t len)
{
    if (len < q->records.len)
        q->records.p[len] = '\0';
    q->records.len = len;
}

/* Frees at least `want` bytes by dropping sweeps, histograms and gaps from the front; less when that is all of them. A sweep cannot
 * be read without those before it, so once one goes, all up to the next key go. *ret_cut: that reached the end of the queue,
 * and the next sweep has nothing to differ from. */
static size_t drop_samples(struct queue *q, size_t want, bool *ret_cut)
{
    size_t at = 0, kept = 0, freed = 0;
    const char *p = q->records.p;
    bool chain_cut = false;
    while (at < q->records.len) {
        struct record head;
        memcpy(&head, p + at, sizeof head);
        size_t size = sizeof head + head.len;
        bool drop = freed < want && (head.type == RECORD_HIST || head.type == RECORD_GAP);
        if (drop && head.type == RECORD_GAP) {
            int64_t span[2];
            memcpy(span, p + at + sizeof head, sizeof span);
            note_lost(q, span[0], span[1]);
        }
        if (head.type == RECORD_SWEEP) {
            int64_t ts;
            memcpy(&ts, p + at + sizeof head, sizeof ts);
            bool key = p[at + sizeof head + sizeof ts] == SWEEP_KEY;
            drop = freed < want || (chain_cut && !key);
            chain_cut = drop;
            if (drop)
                queue_lost_sweep(q, ts);
        }
        if (drop)
            freed += size;
        else
            keep(q, &kept, at, size);
        at += size;
    }
    cut(q, kept);
    *ret_cut = chain_cut;
    return freed;
}

enum life_seen { SEEN_BEGUN = 1, SEEN_OVER };

/* Which lives both begin and end in the queue, oldest first, until their records make up `want` bytes. */
static int find_over(const struct queue *q, size_t want, struct map *seen)
{
    size_t freed = 0;
    int rc = 0;
    for (size_t at = 0; at < q->records.len && !rc;) {
        struct record head;
        int64_t id;
        uint64_t state = 0;
        memcpy(&head, q->records.p + at, sizeof head);
        memcpy(&id, q->records.p + at + sizeof head, sizeof id);
        if (head.type == RECORD_LIFE) {
            rc = map_put(seen, (uint64_t)id, SEEN_BEGUN); /* also when it was over: it runs again */
        } else if (head.type == RECORD_LIFE_END && freed < want && map_get(seen, (uint64_t)id, &state)) {
            rc = map_put(seen, (uint64_t)id, SEEN_OVER);
            freed += sizeof head + head.len;
        }
        at += sizeof head + head.len;
    }
    return rc;
}

/* Drops lives that are over before anybody could hear of them. Only when no sweep is left: none may speak of them. */
static void drop_lives(struct queue *q, size_t want)
{
    _cleanup_map_ struct map seen;
    size_t at = 0, kept = 0;
    map_init(&seen, LIVES_MAX);
    if (find_over(q, want, &seen)) /* no memory to make room with: what is put is refused */
        return;
    while (at < q->records.len) {
        struct record head;
        struct { int64_t id; struct life_end end; } r;
        uint64_t state = 0;
        memcpy(&head, q->records.p + at, sizeof head);
        memcpy(&r.id, q->records.p + at + sizeof head, sizeof r.id);
        bool life = head.type == RECORD_LIFE || head.type == RECORD_LIFE_END;
        if (!life || !map_get(&seen, (uint64_t)r.id, &state) || state != SEEN_OVER) {
            keep(q, &kept, at, sizeof head + head.len);
        } else if (head.type == RECORD_LIFE_END) {
            memcpy(&r.end, q->records.p + at + sizeof head + sizeof r.id, sizeof r.end);
            note_lost(q, ms_of(r.end.wall_ns), ms_of(r.end.wall_ns));
            q->lost_lives++;
        }
        at += sizeof head + head.len;
    }
    cut(q, kept);
}

/* An eighth at a time, or every sweep would move the whole queue. */
static void make_room(struct store *s, size_t size)
{
    struct queue *q = &s->w.queue;
    size_t want = MAX(q->max / 8, size);
    bool chain_cut;
    size_t freed = drop_samples(q, want, &chain_cut);
    if (freed < want)
        drop_lives(q, want - freed);
    if (chain_cut)
        s->w.since_key = SWEEP_KEY_EVERY;
}

int queue_put(struct store *s, enum record_type type, const void *a, size_t alen, const void *b, size_t blen, struct err *err)
{
    struct queue *q = &s->w.queue;
    struct record head = {.len = (uint32_t)(alen + blen), .type = type};
    size_t size = sizeof head + alen + blen;
    if (q->records.len + size > q->max)
        make_room(s, size);
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
    if (full.end.cause != LIFE_RUNNING) /* ended before: whoever says it again no longer knows its samples */
        return 0;
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

/* ---- gaps: one that touches the one before and has the same reason makes it longer ---- */

struct gap { int64_t id, from_ms, to_ms; char why[TEXT_MAX]; };

static int last_gap(struct store *s, struct gap *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = db_number(s, STMT_GAP_LAST, &ret->id, err);
    if (!rc)
        rc = rows_open(&r, s, STMT_GAP_ALL, TABLE_GAP, err, VI(ret->id - 1));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1) {
        ret->from_ms = rows_int(&r, 1);
        ret->to_ms = rows_int(&r, 2);
        str_copy(ret->why, sizeof ret->why, rows_text(&r, 3));
    }
    return rc;
}

/* "the clock was set back by 3s" and "... by 20s" are the same reason. */
static bool same_reason(const char *a, const char *b)
{
    size_t n = strcspn(a, "0123456789");
    return n == strcspn(b, "0123456789") && !memcmp(a, b, n);
}

static void join_gap(struct gap *last, const char *why, int64_t from_ms, int64_t to_ms)
{
    static const char often[] = "; more than once";
    bool same = str_eq(why, last->why), longer = to_ms - from_ms > last->to_ms - last->from_ms;
    last->from_ms = MIN(last->from_ms, from_ms);
    last->to_ms = MAX(last->to_ms, to_ms);
    if (same || strstr(last->why, often))
        return;
    if (longer)
        str_copy(last->why, sizeof last->why, why);
    size_t n = strlen(last->why);
    str_copy(last->why + n, sizeof last->why - n, often);
}

static int write_gap(struct store *s, int64_t from_ms, int64_t to_ms, const char *why, struct err *err)
{
    struct gap last;
    int rc = last_gap(s, &last, err);
    if (rc < 0)
        return rc;
    if (rc == 1 && from_ms <= last.to_ms && to_ms >= last.from_ms && same_reason(why, last.why)) {
        join_gap(&last, why, from_ms, to_ms);
        return db_put(s, STMT_GAP_PUT, TABLE_GAP, err, VI(last.id), VI(last.from_ms), VI(last.to_ms), VT(last.why));
    }
    rc = db_put(s, STMT_GAP_PUT, TABLE_GAP, err, VI(last.id + 1), VI(from_ms), VI(to_ms), VT(why));
    return rc || last.id < GAPS_MAX ? rc : db_run(s, STMT_GAP_TRIM, err, VI(GAPS_MAX));
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
    if (q->lost) {
        char why[96], lives[48] = "";
        if (q->lost_lives)
            str_fmt(lives, sizeof lives, " and %llu short lives", (unsigned long long)q->lost_lives);
        str_fmt(why, sizeof why, "the disk was full: %llu sweeps%s lost", (unsigned long long)q->lost_sweeps, lives);
        rc = write_gap(s, q->lost_from_ms, q->lost_to_ms, why, err);
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

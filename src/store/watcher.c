/* What the watcher puts: targets and lives, sweeps, histograms, gaps; and the commit that writes it. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define SYNC_EVERY_NS (5 * NS_PER_S)

/* ---- opening ---- */

/* Time of the newest sweep: in the log, or what the last sealing wrote down. */
static int newest_ms(struct store *s, int64_t *ret, struct err *err)
{
    int64_t logged;
    int rc = meta_get(s, META_SEALED_MS, MS_INVALID, ret, err);
    if (!rc)
        rc = db_number(s, STMT_SWEEP_NEWEST, &logged, err);
    if (!rc && logged != MS_INVALID && logged > *ret)
        *ret = logged;
    return rc;
}

int store_last_sweep(struct store *s, int64_t *ret_wall_ns, struct err *err)
{
    int64_t ms;
    int rc = newest_ms(s, &ms, err);
    if (!rc)
        *ret_wall_ns = ns_of(ms);
    return rc;
}

int watcher_open(struct store *s, struct err *err)
{
    struct watcher *w = &s->w;
    queue_init(&w->queue, s->config.queue_max_bytes);
    vec_init(&w->lives, sizeof(struct live), LIVES_MAX);
    map_init(&w->index, LIVES_MAX);
    buf_init(&w->encoded, w->queue.max);
    vec_init(&w->order, sizeof(uint32_t), LIVES_MAX);
    w->since_key = SWEEP_KEY_EVERY; /* the first sweep is a key: nobody knows what the one before holds */
    w->last_ms = w->stored_ms = MS_INVALID;
    w->nkeys = -1;
    map_init(&w->keys_named, (size_t)(4 * keys_max(s)));
    w->rows = mem_alloc(SWEEP_GROUP * SWEEP_ROW_MAX);
    if (!w->rows)
        return err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
    int rc = db_number(s, STMT_LIFE_LAST, &w->next_life, err);
    if (!rc)
        rc = db_number(s, STMT_SWEEP_LAST, &w->next_seq, err);
    if (!rc)
        rc = newest_ms(s, &w->stored_ms, err);
    w->next_life++;
    w->next_seq++;
    return rc ? rc : lives_load(s, err);
}

void watcher_close(struct store *s)
{
    struct watcher *w = &s->w;
    buf_release(&w->queue.records);
    buf_release(&w->encoded);
    vec_release(&w->lives);
    vec_release(&w->order);
    map_release(&w->index);
    map_release(&w->keys_named);
    mem_free(w->rows);
    seal_free(w->seal);
}

static int must_watch(const struct store *s, struct err *err)
{
    return s->mode == STORE_WATCH ? 0 : err_set(err, LT_EUSAGE, "store %s: not opened for watching", s->path);
}

/* ---- lives ---- */

/* The live of an id that is in the store already, its summary as far as it goes. */
static int resume(struct store *s, int64_t id, struct live **ret, struct err *err)
{
    struct life_full full;
    *ret = live_find(s, id);
    if (*ret)
        return 0;
    int rc = life_get(s, id, &full, err);
    if (rc)
        return rc;
    *ret = live_add(s, id);
    if (!*ret)
        return err_set(err, LT_ENOMEM, "store %s: too many lives, or out of memory", s->path);
    (*ret)->sum = full.sum;
    return 0;
}

int store_life_begin(struct store *s, const struct life_info *info, int64_t *ret_id, struct err *err)
{
    struct life_full full;
    struct live *l;
    int rc = must_watch(s, err);
    if (rc)
        return rc;
    int64_t id = s->w.next_life;
    size_t lives = s->w.lives.n;
    rc = life_find(s, info, 1, &full, NULL);
    if (!rc)
        rc = resume(s, id = full.id, &l, err);
    else if (rc == LT_ENOENT || rc == LT_ECORRUPT)
        rc = (l = live_add(s, id)) ? 0 : err_set(err, LT_ENOMEM, "store %s: too many lives, or out of memory", s->path);
    else
        err_set(err, rc, "store %s: cannot look for a life: %s", s->path, err_sentence(rc));
    if (!rc)
        rc = queue_put(s, RECORD_LIFE, &id, sizeof id, info, sizeof *info, err);
    if (rc) {
        if (s->w.lives.n > lives) /* added just now: the next try begins anew */
            live_remove(s, id);
        return rc;
    }
    l->begun = true;
    if (id == s->w.next_life)
        s->w.next_life++;
    *ret_id = id;
    return 0;
}

/* Last values: those given where they were measured, else the last the store saw. */
static void take_last(struct summary *sum, const int64_t *last)
{
    for (int i = 0; last && i < METRIC_N; i++) {
        if (last[i] < 0)
            continue;
        sum->last[i] = last[i];
        if (sum->first[i] == METRIC_NA)
            sum->first[i] = last[i];
    }
    if (last && !sum->samples) /* never in a sweep: its values are known all the same */
        for (int i = 0; i < METRIC_N; i++)
            sum->first[i] = sum->last[i];
}

int store_life_end(struct store *s, int64_t life_id, const struct life_end *end, const int64_t *last, struct err *err)
{
    struct live *l;
    int rc = must_watch(s, err);
    if (rc)
        return rc;
    rc = resume(s, life_id, &l, err);
    if (rc == LT_ENOENT && life_id > 0 && life_id < s->w.next_life) /* begun and ended since the last commit: it is over */
        return 0;
    if (rc)
        return rc;
    _cleanup_buf_ struct buf b;
    buf_init(&b, 64 + sizeof life_id + sizeof *end + 22 * METRIC_N);
    struct summary sum = l->sum;
    take_last(&sum, last);
    rc = buf_append(&b, &life_id, sizeof life_id);
    rc = rc ? rc : buf_append(&b, end, sizeof *end);
    rc = rc ? rc : summary_put(&b, &sum);
    if (rc)
        return err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
    rc = queue_put(s, RECORD_LIFE_END, b.p, b.len, "", 0, err);
    live_remove(s, life_id); /* queued or not, it is over: kept, it would stay for ever */
    return rc;
}

int store_end_stale(struct store *s, int64_t target_id, const uint8_t boot_id[16], struct err *err)
{
    int64_t after = 0;
    for (;;) {
        struct life_full full = {0};
        struct live *l = NULL;
        int rc;
        {
            _cleanup_rows_ struct rows r = {0};
            rc = rows_open(&r, s, STMT_LIFE_RUNNING, TABLE_LIFE, err, VI(target_id), VI(after));
            if (!rc)
                rc = rows_next(&r, err);
            if (rc == 1) {
                after = rows_int(&r, 0);
                rc = life_read(s, &r, &full, err);
                l = live_find(s, after);
                rc = rc == LT_ECORRUPT ? 2 : rc ? rc : 1;
            }
        }
        if (rc <= 0)
            return rc;
        if (rc == 2 || (l && l->begun))
            continue;
        int64_t seen = l ? l->sum.last_ms : full.sum.last_ms;
        bool same_boot = !memcmp(full.info.key.boot_id, boot_id, 16);
        struct life_end end = {.wall_ns = seen == MS_INVALID ? full.info.start_wall_ns : ns_of(seen),
                               .cause = same_boot ? LIFE_VANISHED : LIFE_REBOOT};
        rc = store_life_end(s, after, &end, NULL, err);
        if (rc)
            return rc;
    }
}

/* ---- sweeps ---- */

/* Positions of a sweep's rows in ascending order of life id; of rows with the same id the last stays. No allocation once the
 * scratch has grown. */
static int sort_rows(struct store *s, const struct sweep *sweep, size_t *ret_n)
{
    struct vec *order = &s->w.order;
    int rc = sweep->n > order->cap ? vec_reserve(order, MIN(sweep->n + sweep->n / 2, order->max)) : 0;
    if (rc)
        return rc;
    uint32_t *o = order->items;
    for (size_t i = 0; i < sweep->n; i++)
        o[i] = (uint32_t)i;
    for (size_t gap = sweep->n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) /* shell sort: in order already is the usual case */
        for (size_t i = gap; i < sweep->n; i++) {
            uint32_t x = o[i];
            size_t j = i;
            for (; j >= gap && (sweep->rows[o[j - gap]].life_id > sweep->rows[x].life_id ||
                                (sweep->rows[o[j - gap]].life_id == sweep->rows[x].life_id && o[j - gap] > x));
                 j -= gap)
                o[j] = o[j - gap];
            o[j] = x;
        }
    size_t n = 0;
    for (size_t i = 0; i < sweep->n; i++) {
        if (n && sweep->rows[o[n - 1]].life_id == sweep->rows[o[i]].life_id)
            n--;
        o[n++] = o[i];
    }
    *ret_n = n;
    return 0;
}

static const int64_t blank[METRIC_N] = {
#define X(id, name, scope, unit, kind, judge, title) METRIC_NA,
    METRICS(X)
#undef X
};

static int encode(struct store *s, const struct sweep *sweep, size_t n, enum sweep_kind kind)
{
    struct sweep_writer out;
    const uint32_t *order = s->w.order.items;
    uint64_t chain = s->w.chain + (kind == SWEEP_KEY);
    int rc = sweep_begin(&out, &s->w.encoded, kind, s->w.rows);
    for (size_t i = 0; i < n && !rc; i++) {
        const struct sample *row = &sweep->rows[order[i]];
        const struct live *l = live_find(s, row->life_id);
        if (l)
            rc = sweep_row(&out, row->life_id, row->v, l->chain == chain ? l->prev : blank);
    }
    return rc ? rc : sweep_end(&out);
}

/* The sweep is in the queue: from here on it counts. */
static void account(struct store *s, const struct sweep *sweep, size_t n, enum sweep_kind kind, int64_t ts_ms)
{
    const uint32_t *order = s->w.order.items;
    s->w.chain += kind == SWEEP_KEY;
    s->w.since_key = kind == SWEEP_KEY ? 1 : s->w.since_key + 1;
    s->w.last_ms = ts_ms;
    for (size_t i = 0; i < n; i++) {
        const struct sample *row = &sweep->rows[order[i]];
        struct live *l = live_find(s, row->life_id);
        if (!l)
            continue;
        l->chain = s->w.chain;
        memcpy(l->prev, row->v, sizeof l->prev);
        summary_add(&l->sum, ts_ms, row->v);
    }
}

/* Spans nothing is known of: while no watch ran, and what a clock that went back covers twice. */
static int put_time_gap(struct store *s, int64_t ts, struct err *err)
{
    int64_t last = s->w.last_ms;
    if (last != MS_INVALID && ts < last)
        return store_put_gap(s, ns_of(ts), ns_of(last), "the clock went back", err);
    if (last != MS_INVALID || s->w.stored_ms == MS_INVALID || ts <= s->w.stored_ms)
        return 0;
    if (s->config.interval_ns && ts - s->w.stored_ms <= 3 * ms_of(s->config.interval_ns))
        return 0;
    return store_put_gap(s, ns_of(s->w.stored_ms), ns_of(ts), "no watch was running", err);
}

/* Codes the sweep and queues it. LT_TORN: the sweep it differs from went while room was made; coded again it is a key. */
static int put_coded(struct store *s, const struct sweep *sweep, size_t n, int64_t ts, struct err *err)
{
    enum sweep_kind kind = s->w.since_key >= SWEEP_KEY_EVERY ? SWEEP_KEY : SWEEP_DELTA;
    buf_clear(&s->w.encoded);
    int rc = encode(s, sweep, n, kind);
    if (rc)
        return err_set(err, rc, "store %s: a sweep of %zu lives: %s", s->path, sweep->n, err_sentence(rc));
    rc = queue_put(s, RECORD_SWEEP, &ts, sizeof ts, s->w.encoded.p, s->w.encoded.len, err);
    if (!rc)
        account(s, sweep, n, kind, ts);
    return rc;
}

int store_put_sweep(struct store *s, const struct sweep *sweep, struct err *err)
{
    size_t n;
    int rc = must_watch(s, err);
    if (rc)
        return rc;
    int64_t ts = ms_of(sweep->wall_ns);
    rc = sort_rows(s, sweep, &n);
    if (rc)
        return err_set(err, rc, "store %s: a sweep of %zu lives: %s", s->path, sweep->n, err_sentence(rc));
    rc = put_time_gap(s, ts, err);
    if (!rc)
        rc = put_coded(s, sweep, n, ts, err);
    if (rc == LT_TORN)
        rc = put_coded(s, sweep, n, ts, err);
    if (rc)
        queue_lost_sweep(&s->w.queue, ts);
    return rc;
}

int store_put_histogram(struct store *s, int64_t life_id, int64_t wall_ns, const char *what, const char *key, int64_t count,
                        struct err *err)
{
    char text[2 * (WORD_MAX + 1)];
    struct hist_record r = {life_id, ms_of(wall_ns), count};
    int rc = must_watch(s, err);
    if (rc)
        return rc;
    str_copy(text, WORD_MAX + 1, what);
    size_t n = strlen(text) + 1;
    str_copy(text + n, WORD_MAX + 1, key);
    n += strlen(text + n) + 1;
    return queue_put(s, RECORD_HIST, &r, sizeof r, text, n, err);
}

int store_put_gap(struct store *s, int64_t from_ns, int64_t to_ns, const char *why, struct err *err)
{
    char text[TEXT_MAX];
    int64_t span[2] = {ms_of(from_ns), ms_of(to_ns)};
    int rc = must_watch(s, err);
    if (rc)
        return rc;
    str_copy(text, sizeof text, why);
    return queue_put(s, RECORD_GAP, span, sizeof span, text, strlen(text) + 1, err);
}

/* ---- commit ---- */

/* A commit is always safe against the end of the process; one in five seconds is also safe against a power cut. */
static int choose_sync(struct store *s, struct err *err)
{
    int64_t now = clock_mono_ns();
    bool full = !s->w.last_sync_ns || now - s->w.last_sync_ns >= SYNC_EVERY_NS;
    if (full)
        s->w.last_sync_ns = now;
    return db_run_n(s, full ? STMT_SYNC_FULL : STMT_SYNC_NORMAL, TABLE_NONE, NULL, 0, err);
}

static int write_queue(struct store *s, struct err *err)
{
    int64_t seq = s->w.next_seq;
    int rc = choose_sync(s, err);
    if (!rc)
        rc = db_begin(s, true, err);
    if (rc)
        return rc;
    rc = queue_write(s, err);
    int rc2 = db_end(s, !rc, rc ? NULL : err);
    rc = rc ? rc : rc2;
    if (rc) {
        s->w.next_seq = seq;
        s->w.nkeys = -1;
    } else {
        queue_clear(&s->w.queue);
    }
    return rc;
}

static int log_size(struct store *s, int64_t *ret_sweeps, int64_t *ret_bytes, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open_n(&r, s, STMT_SWEEP_COUNT, TABLE_NONE, NULL, 0, err);
    if (!rc)
        rc = rows_next(&r, err);
    if (rc < 0)
        return rc;
    *ret_sweeps = rows_int(&r, 0);
    *ret_bytes = rows_int(&r, 1);
    return 0;
}

/* A full block is sealed, a part of it a commit; at once when more are waiting, or when the log is out of proportion to the
 * budget, full block or not. */
static int seal_if_due(struct store *s, struct err *err)
{
    int64_t sweeps = 0, bytes = 0;
    int rc = log_size(s, &sweeps, &bytes, err);
    bool large = bytes > s->config.disk_budget_bytes / 8, hurry = large || sweeps >= 2 * BLOCK_SWEEPS;
    if (rc || (!seal_active(s) && sweeps < BLOCK_SWEEPS && !large))
        return rc;
    rc = budget_keep(s, bytes, err);
    if (!rc && !seal_active(s))
        rc = seal_begin(s, err);
    if (!rc)
        rc = db_begin(s, true, err);
    if (rc)
        return rc;
    rc = seal_some(s, hurry, err);
    int rc2 = db_end(s, !rc, rc ? NULL : err);
    if (!rc && !rc2)
        seal_committed(s);
    return rc ? rc : rc2;
}

int store_commit(struct store *s, struct err *err)
{
    int rc = must_watch(s, err);
    if (!rc)
        rc = budget_keep(s, (int64_t)s->w.queue.records.len, err);
    if (!rc)
        rc = write_queue(s, err);
    if (!rc)
        rc = seal_if_due(s, err);
    if (!rc && s->w.last_ms != MS_INVALID)
        rc = retain_step(s, s->w.last_ms, err);
    return rc;
}

size_t store_queued_bytes(const struct store *s) { return s->mode == STORE_WATCH ? s->w.queue.records.len : 0; }

/* One sweep: what happened, who is there, what they hold, rows. */
#include <string.h>

#include "source/engine.h"

#define SCAN_ROUNDS 4           /* scans of the host in one sweep while they still find new roots */

/* ---- who is there --------------------------------------------------------------------------------------------------- */

static int find_all_roots(struct watch *w, bool thorough, struct err *err)
{
    for (size_t i = 0; i < w->targets.n; i++) {
        struct target *t = target_at(w, i);
        struct err why;
        int r = find_roots(w, i, thorough, &why);

        if (r == LT_EAMBIG && !t->said_ambiguous) {
            t->said_ambiguous = true;
            watch_note(w, t, "ambiguous", "%s", why.text);
        }
        if (r == LT_ENOMEM)
            return err_set(err, r, "%s", why.text);
    }
    return 0;
}

/* The processes of the host are looked at when nobody tells us of new ones, when events were lost, and now and then (left-overs
 * are found host-wide). A new root may have had children before we knew it: they are looked for once it is a member, when
 * forks after that moment come as events. */
static bool is_live(const void *ctx, int32_t pid)
{
    const struct member *m = member_find(ctx, pid);

    return m && m->state == MEMBER_LIVE;
}

static int discover(struct watch *w, struct err *err)
{
    bool full = watch_due(w, w->config.slow_every);
    bool scan = full || w->rescan || !events_connector(w->events);
    int r = 0;

    for (int round = 0; round < SCAN_ROUNDS && (round == 0 || w->rescan); round++) {
        if (scan || w->rescan)
            r = proctab_scan(&w->tab, full || w->rescan, is_live, w, err);
        if (r < 0 && r != LT_ELIMIT)
            return r;
        scan |= w->rescan;
        w->rescan = false;
        r = find_all_roots(w, full, err);
        if (r < 0)
            return r;
        if (scan)
            find_descendants(w);
        if (full && round == 0)
            tree_orphans(w);
    }
    return 0;
}

/* Opens those that became known: their lives begin. */
static int open_new(struct watch *w)
{
    for (size_t i = 0; i < w->members.n; i++) {
        struct member *m = member_at(w, i);
        int r;

        if (m->state != MEMBER_NEW)
            continue;
        r = member_open(w, m);
        if (w->failure)
            return w->failure;
        if (r == LT_TORN || r == LT_GONE)
            ending_unopened(w, m, r == LT_TORN);
        else if (r == 0 && m->root)
            r = target_joined(w, target_of(w, m), m);
        if (r < 0 && r != LT_TORN && r != LT_GONE)
            return r;
    }
    return 0;
}

/* ---- what they hold -------------------------------------------------------------------------------------------------- */

static bool any_new_target(const struct watch *w)
{
    VEC_EACH (struct target, t, &w->targets)
        if (t->members && !t->was_read)
            return true;
    return false;
}

static void read_members(struct watch *w)
{
    const uint32_t *order = w->order.items;

    reading_swap(w);
    for (size_t i = 0; i < w->order.n; i++) {
        struct member *m = member_at(w, order[i]);

        m->fresh = m->state == MEMBER_LIVE && reading_quick(w, m) == 0 && reading_slow(w, m) == 0;
        if (!m->fresh)
            ending_lost(w, m);
    }
    if (w->sockets)
        handles_count(w);
    for (size_t i = 0; i < w->order.n; i++)
        if (member_at(w, order[i])->fresh)
            handles_histograms(w, member_at(w, order[i]));
}

static void read_targets(struct watch *w)
{
    bool slow = watch_due(w, w->config.kinds_every) || any_new_target(w);

    if (slow)
        tmpdirs_round(w->tmpdirs);
    VEC_EACH (struct target, t, &w->targets)
        if (t->members)
            target_read(w, t, slow);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

static int add_row(struct watch *w, int64_t life_id, const int64_t v[METRIC_N])
{
    struct sample *row = vec_push(&w->rows);

    if (!row)
        return LT_ENOMEM;
    row->life_id = life_id;
    memcpy(row->v, v, sizeof row->v);
    return 0;
}

/* In the order of life ids: members are; targets, few, are put in between. */
static int add_targets_below(struct watch *w, int64_t after, int64_t below)
{
    for (;;) {
        const struct target *next = NULL;

        VEC_EACH (struct target, t, &w->targets)
            if (t->members && t->life_id != NO_LIFE && t->life_id > after && t->life_id < below && (!next || t->life_id < next->life_id))
                next = t;
        if (!next)
            return 0;
        if (add_row(w, next->life_id, next->v) < 0)
            return LT_ENOMEM;
        after = next->life_id;
    }
}

static int make_rows(struct watch *w, size_t *ret_processes, struct err *err)
{
    const uint32_t *order = w->order.items;
    int64_t after = INT64_MIN;
    int r = 0;

    vec_clear(&w->rows);
    *ret_processes = 0;
    for (size_t i = 0; i < w->order.n && r == 0; i++) {
        const struct member *m = member_at(w, order[i]);

        if (!m->fresh || m->state != MEMBER_LIVE)
            continue;
        r = add_targets_below(w, after, m->life_id);
        after = m->life_id;
        if (r == 0)
            r = add_row(w, m->life_id, m->v);
        ++*ret_processes;
    }
    if (r == 0)
        r = add_targets_below(w, after, INT64_MAX);
    return r < 0 ? err_set(err, r, "sampler: out of memory for %zu rows", w->order.n) : 0;
}

static int run(struct watch *w, size_t *ret_processes, struct err *err)
{
    int r = events_drain(w->events, ending_event, w, err);

    if (r == 0)
        r = discover(w, err);
    if (r == 0 && ((r = w->failure) < 0 || (r = open_new(w)) < 0))
        return err_set(err, r, "sampler: a life could not be begun: %s", err_sentence(r));
    if (r < 0)
        return r;
    tree_after_deaths(w);
    read_members(w);
    r = events_drain(w->events, ending_event, w, err);
    ending_settle(w);
    tree_count(w);
    target_presence(w);
    read_targets(w);
    if (r == 0 && (r = w->failure) < 0)
        return err_set(err, r, "sampler: a life could not be begun: %s", err_sentence(r));
    return r < 0 ? r : make_rows(w, ret_processes, err);
}

int watch_sweep(struct watch *w, int64_t wall_ns, struct sweep *ret_sweep, struct err *err)
{
    int64_t cpu = clock_cpu_ns(), mono = clock_mono_ns();
    size_t processes = 0;
    int r;

    w->sweep++;
    w->wall_ns = wall_ns;
    w->failure = 0;
    r = run(w, &processes, err);
    w->stats.cpu_ns += clock_cpu_ns() - cpu;
    w->stats.last_sweep_ns = clock_mono_ns() - mono;
    if (r < 0)
        return r;
    *ret_sweep = (struct sweep){ wall_ns, w->rows.n, w->rows.items, processes };
    return 0;
}

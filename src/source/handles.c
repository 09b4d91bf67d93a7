/* What a member's descriptors are: kinds, sockets by state, histograms of paths and peers. All at lower rates. */
#include <string.h>

#include "source/engine.h"

/* ---- kinds ------------------------------------------------------------------------------------------------------ */

static const uint8_t slower[] = { [1] = 2, [2] = 6, [6] = 6 };

static bool many_fds_moved(const struct member *m)
{
    int64_t moved = m->v[METRIC_FDS] - m->kinds_fds;

    if (m->v[METRIC_FDS] == METRIC_NA)
        return m->kinds_fds >= 0;
    return m->kinds_fds < 0 || moved > 8 || moved < -8 || moved * 50 > m->kinds_fds || moved * 50 < -m->kinds_fds;
}

static bool sockets_due(const struct watch *w)
{
    return watch_due(w, w->config.kinds_every) || watch_due(w, w->config.slow_every);
}

/* Many descriptors came or went: now. Any did: now, when the kinds are kinds_every sweeps old. None did: at the pace that what
 * was found sets, every 6 * kinds_every sweeps at least; when the process did not even run, so seldom from the start. */
bool handles_due(const struct watch *w, const struct member *m)
{
    bool ran = m->cpu_seen_ns < 0 || m->cpu_seen_ns != m->kinds_cpu_ns;

    if (m->sockets_lapsed || many_fds_moved(m) || (m->sockets_churn && sockets_due(w)))
        return true;
    if (m->v[METRIC_FDS] != m->kinds_fds && w->sweep - m->kinds_sweep >= w->config.kinds_every)
        return true;
    return watch_turn(w, m, watch_every(w, ran ? m->kinds_pace : 6));
}

static void say_permission(struct watch *w, const struct member *m)
{
    if (w->said_permission_fd)
        return;
    w->said_permission_fd = true;
    watch_note(w, target_of(w, m), "permission",
               "the descriptors of process %d cannot be looked at: kinds and sockets stay unknown; run as its user, or with "
               "CAP_SYS_PTRACE", (int)m->key.pid);
}

static void blank_kinds(struct member *m)
{
    for (int i = METRIC_SOCKETS; i <= METRIC_UNIX_SOCKETS; i++)
        m->v[i] = METRIC_NA;
}

/* Reads into m->v and appends the sockets. 0; LT_ELIMIT: no room for the sockets, whose states stay unknown; or the code for
 * which the kinds are. */
static int read_kinds(struct watch *w, struct member *m, int dirfd)
{
    struct vec *list = w->sockets ? &w->socketpool.items : NULL;
    size_t from = w->socketpool.items.n, lost = 0;
    struct fd_kinds k;
    int r = fdkinds_read(w->kinds, dirfd, w->fd_by_size ? m->v[METRIC_FDS] : -1, w->config.kinds_budget_ns, &k, list, &lost, NULL);

    m->kinds_shm = r == 0 && k.exact ? k.shm : -1;
    if (r < 0 || lost) {
        w->socketpool.items.n = from;
        blank_kinds(m);
    }
    if (r < 0)
        return r;
    fdkinds_metrics(&k, m->v);
    if (m->v[METRIC_FDS] == METRIC_NA)
        m->v[METRIC_FDS] = k.fds;
    m->sockets_scale = k.scale;
    m->kinds_err = k.err;
    return lost ? LT_ELIMIT : 0;
}

/* Whether the list just read from `from` on is the one that is kept. */
static bool same_sockets(const struct watch *w, const struct member *m, size_t from)
{
    const struct fd_socket *was = socketpool_list(&w->socketpool, &m->sockets);
    const struct fd_socket *now = (const struct fd_socket *)w->socketpool.items.items + from;
    bool same = w->socketpool.items.n - from == m->sockets.n;

    for (size_t i = 0; same && i < m->sockets.n; i++)
        same = now[i].inode == was[i].inode && now[i].fd == was[i].fd;
    return same;
}

int handles_read(struct watch *w, struct member *m, int dirfd)
{
    int64_t before[METRIC_FD_KINDS_ERR - METRIC_SOCKETS + 1], fds = m->v[METRIC_FDS];
    size_t from = w->socketpool.items.n;
    bool at_once = m->sockets_lapsed || many_fds_moved(m), same;
    int r;

    memcpy(before, &m->v[METRIC_SOCKETS], sizeof before);
    r = read_kinds(w, m, dirfd);
    m->sockets_churn = (m->sockets_churn || m->sockets_lapsed) && !same_sockets(w, m, from);
    socketpool_take(&w->socketpool, &m->sockets, from);
    if (r == LT_EPERM)
        say_permission(w, m);
    same = fds == m->kinds_fds && !memcmp(before, &m->v[METRIC_SOCKETS], sizeof before);
    m->kinds_pace = same ? slower[m->kinds_pace] : 1;
    m->kinds_sweep = w->sweep;
    m->kinds_fds = fds;
    m->kinds_cpu_ns = m->cpu_seen_ns;
    m->sockets_lapsed = false;
    m->sockets_now = r == 0 && (at_once || m->v[METRIC_SOCKETS] != before[0] || sockets_due(w));
    m->sockets_kept = false;
    return r == LT_GONE ? r : 0;
}

void handles_keep(const struct watch *w, struct member *m)
{
    m->sockets_now = m->sockets.n && sockets_due(w);
    m->sockets_kept = true;
}

/* ---- sockets ---------------------------------------------------------------------------------------------------- */

/* What a kept list names and is no more was closed since, and another may have taken its place: the count is made at the next
 * sweep, of a new list. */
static void count_sockets(struct watch *w, struct member *m, int dirfd)
{
    struct socket_list list = { socketpool_list(&w->socketpool, &m->sockets), m->sockets.n, m->sockets_scale, m->sockets_kept,
                                w->config.kinds_budget_ns };
    struct socket_doubt doubt;
    int64_t v[METRIC_N];

    sockets_count(w->sockets, dirfd, &list, v, &doubt);
    m->sockets_lapsed = m->sockets_kept && doubt.gone;
    if (m->sockets_lapsed)
        return;
    memcpy(&m->v[METRIC_CONNECTIONS], &v[METRIC_CONNECTIONS], (METRIC_UNIX_SOCKETS - METRIC_CONNECTIONS + 1) * sizeof v[0]);
    m->v[METRIC_FD_KINDS_ERR] = MAX(m->kinds_err, doubt.err);
}

static void pack(struct watch *w)
{
    if (socketpool_pack(&w->socketpool))
        VEC_EACH (struct member, m, &w->members)
            socketpool_move(&w->socketpool, &m->sockets);
}

void handles_count(struct watch *w)
{
    const uint32_t *order = w->order.items;
    bool stale = false;

    for (size_t i = 0; i < w->order.n; i++) {
        struct member *m = member_at(w, order[i]);
        _cleanup_fd_ int temp = -1;
        int dirfd;

        if (!m->fresh || !m->sockets_now)
            continue;
        if (!m->sockets.n) {
            for (int j = METRIC_CONNECTIONS; j <= METRIC_UNIX_SOCKETS; j++)
                m->v[j] = 0;
            continue;
        }
        if (!stale)
            sockets_stale(w->sockets);
        stale = true;
        dirfd = reading_window(w, m, &temp);
        if (dirfd >= 0 && sockets_want(w->sockets, dirfd, NULL) != LT_GONE)
            count_sockets(w, m, dirfd);
    }
    pack(w);
}

/* ---- histograms -------------------------------------------------------------------------------------------------- */

#define HISTOGRAM_TOP 32

struct tell { struct watch *w; int64_t life_id; const char *what; };

static int tell_row(void *ctx, const char *key, int64_t count)
{
    const struct tell *t = ctx;

    t->w->sink.histogram(t->w->sink.ctx, t->life_id, t->what, key, count);
    return 0;
}

/* Paths cost as much as kinds do, and hardly change when those do not: members take turns, and quiet ones back off. Whoever
 * wants all of every sweep (kinds_every 1) compares looks at all members: they come together. */
static bool paths_due(const struct watch *w, const struct member *m)
{
    bool quiet = m->kinds_pace > 1 && m->v[METRIC_FDS] == m->kinds_fds;

    if (w->config.kinds_every == 1)
        return watch_due(w, w->config.slow_every);
    return !m->paths_seen || watch_turn(w, m, (quiet ? 3 : 1) * w->config.slow_every);
}

static void tell_paths(struct watch *w, struct member *m)
{
    _cleanup_fd_ int temp = -1;
    int dirfd = reading_window(w, m, &temp);
    struct tell tell = { w, m->life_id, "path" };

    m->paths_seen = true;
    if (dirfd >= 0 &&
        fdkinds_paths(w->kinds, dirfd, w->fd_by_size ? m->v[METRIC_FDS] : -1, w->config.kinds_budget_ns, w->tally, NULL) == 0)
        tally_each(w->tally, HISTOGRAM_TOP, tell_row, &tell);
}

/* Of the table of sockets, which is of this sweep. */
static void tell_peers(struct watch *w, struct member *m)
{
    struct tell tell = { w, m->life_id, "peer" };

    sockets_peers(w->sockets, socketpool_list(&w->socketpool, &m->sockets), m->sockets.n, w->tally);
    tally_scale(w->tally, m->sockets_scale);
    tally_each(w->tally, HISTOGRAM_TOP, tell_row, &tell);
}

void handles_histograms(struct watch *w, struct member *m)
{
    if (!w->sink.histogram)
        return;
    if (paths_due(w, m))
        tell_paths(w, m);
    if (w->sockets && m->sockets_now && m->sockets.n && watch_due(w, w->config.slow_every))
        tell_peers(w, m);
}

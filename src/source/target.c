#include <stdio.h>
#include <string.h>

#include "source/engine.h"

void watch_note(struct watch *w, const struct target *t, const char *kind, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    if (!w->sink.note)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    w->sink.note(w->sink.ctx, t ? t->name : "", kind, text);
}

static void blank(struct target *t)
{
    for (int i = 0; i < METRIC_N; i++)
        t->v[i] = METRIC_NA;
}

/* The target's own row is a life with pid 0, which outlives the restarts of its processes. */
static int begin_row(struct watch *w, struct target *t)
{
    struct life_info info = { .target_id = t->id, .start_wall_ns = clock_wall_ns() };
    int r;

    memcpy(info.key.boot_id, w->boot_id, sizeof info.key.boot_id);
    /* Targets that begin in the same tick must differ, too. */
    info.key.start = (uint64_t)(clock_boot_ns() / (NS_PER_S / w->hz)) + (uint64_t)(t - (struct target *)w->targets.items);
    str_copy(info.comm, sizeof info.comm, "target");
    str_copy(info.role, sizeof info.role, t->name);
    r = w->sink.begin(w->sink.ctx, &info, &t->life_id);
    if (r < 0)
        t->life_id = NO_LIFE;
    return r;
}

/* The group of its processes: that of the root opened last, looked at again now and then, since a process may be moved. */
static void find_cgroup(struct watch *w, struct target *t, const struct member *root)
{
    struct cgroup_memory memory;
    struct cgroup g;

    if (!w->has_mounts || root->dirfd < 0 || cgroup_of(&w->mounts, root->dirfd, &g, NULL) < 0)
        return;
    if (t->cgroup.version && str_eq(g.dir, t->cgroup.dir))
        return;
    t->cgroup = g;
    t->cgroup_shared = cgroup_is_shared(&g, w->has_own_cgroup ? &w->own_cgroup : NULL);
    t->oom_seen = t->oom_last = cgroup_memory(&g, &memory, NULL) == 0 ? memory.oom_kills : METRIC_NA;
}

int target_joined(struct watch *w, struct target *t, const struct member *root)
{
    int r = 0;

    if (t->life_id == NO_LIFE)
        r = begin_row(w, t);
    if (r == 0)
        find_cgroup(w, t, root);
    return r;
}

static void say_found(struct watch *w, struct target *t)
{
    VEC_EACH (struct member, m, &w->members)
        if (m->state == MEMBER_LIVE && target_of(w, m) == t && m->root) {
            char comm[COMM_MAX];

            str_copy(comm, sizeof comm, m->comm);
            str_printable(comm);
            watch_note(w, t, "found", "process %d (%s), %zu processes in all", (int)m->key.pid, comm, t->members);
            return;
        }
}

static void say_waiting(struct watch *w, const struct target *t)
{
    if (t->sel.kind == SELECT_PORT)
        watch_note(w, t, "waiting", "nobody listens on port %u in our own network namespace yet; it is looked for at every sweep. Inside "
                   "of containers it is not: name what runs there by cgroup:PATH, unit:NAME or cmd:REGEX", (unsigned)t->sel.port);
    else
        watch_note(w, t, "waiting", "nothing matches %.100s yet; it is looked for at every sweep", t->sel.text);
}

void target_presence(struct watch *w)
{
    VEC_EACH (struct target, t, &w->targets) {
        bool present = t->members > 0;

        if (present && !t->present)
            say_found(w, t);
        else if (!present && t->present)
            watch_note(w, t, "gone", t->sel.kind == SELECT_PID ? "its process has ended and does not come back"
                                                               : "no process left; it is looked for at every sweep");
        else if (!present && !t->said_waiting && !t->said_ambiguous)
            say_waiting(w, t);
        t->said_waiting |= !present;
        t->present = present;
    }
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

static void read_cgroup(struct target *t)
{
    struct cgroup_memory memory = { METRIC_NA, METRIC_NA, METRIC_NA, false };

    if (t->cgroup.version && cgroup_memory(&t->cgroup, &memory, NULL) < 0)
        memory = (struct cgroup_memory){ METRIC_NA, METRIC_NA, METRIC_NA, false };
    t->v[METRIC_CGROUP_BYTES] = memory.bytes;
    t->v[METRIC_CGROUP_LIMIT] = memory.limit;
    t->v[METRIC_OOM_KILLS] = memory.oom_kills;
    /* A sweep late, since the event of a death may come after the counter was read. */
    t->oom_seen = MAX(t->oom_seen, t->oom_last);
    t->oom_last = memory.oom_kills;
}

/* Any process of the target with a held folder: roots first, since a worker may have another root folder or namespace. */
static const struct member *window(const struct watch *w, const struct target *t)
{
    const struct member *any = NULL;

    for (size_t i = 0; i < w->order.n; i++) {
        const struct member *m = member_at(w, *(uint32_t *)vec_at(&w->order, i));

        if (target_of(w, m) != t || !m->fresh || m->dirfd < 0)
            continue;
        if (m->root)
            return m;
        any = any ? any : m;
    }
    return any;
}

/* What is not counted for a reason that will stay is said once. */
static void say_uncounted(struct watch *w, const struct target *t, int code, const struct err *err, bool *said)
{
    if (*said || (code != LT_ELIMIT && code != LT_EUNSUPPORTED) || !err->code)
        return;
    *said = true;
    watch_note(w, t, "limit", "%s", err->text);
}

/* Not known, rather than too low, until the first walk has come to its end. */
static void read_tmpdirs(struct watch *w, struct target *t, const struct member *m)
{
    struct tmpdir_count count;
    struct err err = { 0 };

    if (!w->tmpdirs || !w->config.ntmp)
        return;
    t->v[METRIC_TMPFILES] = t->v[METRIC_TMP_BYTES] = METRIC_NA;
    int r = tmpdirs_count(w->tmpdirs, m->dirfd, w->config.tmp_dirs, w->config.ntmp, &count, &err);
    if (r < 0)
        say_uncounted(w, t, r, &err, &t->said_tmp);
    if (r < 0 || count.at_least)
        return;
    t->v[METRIC_TMPFILES] = count.files;
    t->v[METRIC_TMP_BYTES] = count.bytes;
}

struct foreign { const struct watch *w; const struct target *t; };

static bool is_foreign(void *ctx, int32_t pid, int64_t wall_s)
{
    const struct foreign *f = ctx;

    VEC_EACH (struct target, t, &f->w->targets)
        if (t != f->t && shm_was_life(t->shm, pid, wall_s))
            return true;
    return false;
}

/* Which segments a process has open costs a look at each of its descriptors: done when the kinds saw some and it opened or
 * closed files since, else seldom. (Most programs close the descriptor once the segment is mapped anyway; then its owner tells.) */
static void look_for_segments(struct watch *w, struct target *t, struct member *m)
{
    if (m->shm_files == SHM_NEVER)
        shm_user(t->shm, m->dirfd, NULL);
    if (m->kinds_shm != 0 && (m->shm_files != m->v[METRIC_FILES] || watch_turn(w, m, 6 * w->config.kinds_every)))
        shm_open_files(t->shm, m->dirfd, 0, NULL);
    m->shm_files = m->v[METRIC_FILES];
}

static void read_shm(struct watch *w, struct target *t, const struct member *window_member)
{
    struct foreign foreign = { w, t };
    struct shm_count count;
    struct err err = { 0 };
    const uint32_t *order = w->order.items;

    for (size_t i = 0; i < w->order.n; i++) {
        struct member *m = member_at(w, order[i]);

        if (target_of(w, m) == t && m->dirfd >= 0 && m->fresh)
            look_for_segments(w, t, m);
    }
    t->v[METRIC_SHM_SEGMENTS] = t->v[METRIC_SHM_BYTES] = METRIC_NA;
    int r = shm_count(t->shm, w->config.proc_root, window_member->dirfd, is_foreign, &foreign, &count, &err);
    if (r == 0 && count.code)
        say_uncounted(w, t, count.code, &err, &t->said_shm);
    if (r == 0 && count.posix && count.sysv) {
        t->v[METRIC_SHM_SEGMENTS] = count.segments;
        t->v[METRIC_SHM_BYTES] = count.bytes;
    }
}

static int64_t count_orphans(const struct watch *w, const struct target *t)
{
    int64_t n = 0;

    for (size_t i = 0; i < w->order.n; i++) {
        const struct member *m = member_at(w, *(uint32_t *)vec_at(&w->order, i));

        n += m->fresh && m->orphan && target_of(w, m) == t;
    }
    return n;
}

void target_read(struct watch *w, struct target *t, bool slow)
{
    const struct member *m = window(w, t);

    if (m && slow)
        find_cgroup(w, t, m);
    read_cgroup(t);
    t->v[METRIC_ORPHANS] = count_orphans(w, t);
    /* Without the connector what came and went between two sweeps is not seen: not known, rather than too low. */
    t->v[METRIC_FORKS] = events_connector(w->events) ? (int64_t)t->forks : METRIC_NA;
    t->v[METRIC_EXITS] = events_connector(w->events) ? (int64_t)t->exits : METRIC_NA;
    if (!m || !slow)
        return;
    read_tmpdirs(w, t, m);
    read_shm(w, t, m);
    t->was_read = true;
}

int target_init(struct target *t, const char *name, const char *selector, int64_t id, struct err *err)
{
    int r;

    memset(t, 0, sizeof *t);
    t->life_id = NO_LIFE;
    t->oom_seen = t->oom_last = METRIC_NA;
    t->id = id;
    blank(t);
    r = selector_parse(&t->sel, selector, err);
    if (r < 0)
        return r;
    t->name = mem_strdup(name);
    if (!t->name || shm_new(&t->shm) < 0) {
        target_release(t);
        return err_set(err, LT_ENOMEM, "target %.80s: out of memory", name);
    }
    return 0;
}

void target_release(struct target *t)
{
    selector_release(&t->sel);
    mem_free(t->name);
    shm_free(t->shm);
    t->name = NULL;
    t->shm = NULL;
}

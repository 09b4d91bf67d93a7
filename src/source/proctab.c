#include "source/proctab.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "source/procfs.h"

int proctab_init(struct proctab *t, int proc_fd, size_t max, struct err *err)
{
    t->proc_fd = proc_fd;
    t->stat_reads = 0;
    vec_init(&t->now, sizeof(struct proctab_entry), max);
    vec_init(&t->before, sizeof(struct proctab_entry), max);
    t->folder_fd = fd_open(proc_fd, ".", O_RDONLY | O_DIRECTORY, 0);
    if (t->folder_fd < 0)
        return err_errno(err, LT_EIO, -t->folder_fd, "/proc: cannot open");
    folder_init(&t->folder, t->folder_fd);
    return 0;
}

void proctab_release(struct proctab *t)
{
    vec_release(&t->now);
    vec_release(&t->before);
    t->folder_fd = fd_close(t->folder_fd);
}

/* The kernel lists pids in rising order, so the entry before is found by walking along; other trees (tests) may not. */
static const struct proctab_entry *entry_before(const struct proctab *t, size_t *at, int32_t pid)
{
    const struct proctab_entry *old = t->before.items;

    if (*at && *at <= t->before.n && old[*at - 1].pid >= pid)
        *at = 0;
    while (*at < t->before.n && old[*at].pid < pid)
        ++*at;
    return *at < t->before.n && old[*at].pid == pid ? &old[*at] : NULL;
}

/* Fills e from stat; false when the process went meanwhile or hides. */
static bool read_entry(struct proctab *t, struct proctab_entry *e, const struct proctab_entry *old)
{
    struct proc_stat st;

    t->stat_reads++;
    if (procfs_stat_of(t->proc_fd, e->pid, &st) < 0)
        return false;
    e->start = st.start;
    e->ppid = st.ppid;
    e->pgrp = st.pgrp;
    e->sid = st.sid;
    e->zombie = st.state == 'Z' || st.state == 'X';
    e->looks = old && old->start == st.start ? (uint8_t)(old->looks + (old->looks < 255)) : 0;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    int32_t x = ((const struct proctab_entry *)a)->pid, y = ((const struct proctab_entry *)b)->pid;

    return (x > y) - (x < y);
}

struct scan { bool reread; proctab_known_fn known; const void *ctx; size_t at; };

static int add_entry(struct proctab *t, const struct folder_entry *f, struct scan *s)
{
    struct proctab_entry e = { .ino = f->ino, .pid = folder_pid(f->name) };
    const struct proctab_entry *old;

    if (!e.pid)
        return 0;
    old = entry_before(t, &s->at, e.pid);
    if (old && old->ino == e.ino && !(s->reread && !(s->known && s->known(s->ctx, e.pid)))) {
        e = *old;
        e.looks = (uint8_t)(old->looks + (old->looks < 255));
    } else if (!read_entry(t, &e, old)) {
        return 0;
    }
    return vec_append(&t->now, &e);
}

int proctab_scan(struct proctab *t, bool reread, proctab_known_fn known, const void *ctx, struct err *err)
{
    struct scan s = { reread, known, ctx, 0 };
    struct vec swap = t->before;
    struct folder_entry f;
    bool sorted = true;
    int r;

    t->before = t->now;
    t->now = swap;
    vec_clear(&t->now);
    r = folder_rewind(&t->folder);
    while (r >= 0 && (r = folder_next(&t->folder, &f)) > 0) {
        const struct proctab_entry *items;

        if ((r = add_entry(t, &f, &s)) < 0)
            return err_set(err, r, "/proc: %zu processes: %s", t->now.n, err_sentence(r));
        items = t->now.items;
        if (t->now.n > 1 && items[t->now.n - 1].pid < items[t->now.n - 2].pid)
            sorted = false;
    }
    if (r < 0)
        return err_errno(err, LT_EIO, -r, "/proc: cannot list");
    if (!sorted)
        qsort(t->now.items, t->now.n, sizeof(struct proctab_entry), by_pid);
    return 0;
}

const struct proctab_entry *proctab_find(const struct proctab *t, int32_t pid)
{
    struct proctab_entry key = { .pid = pid };

    if (!t->now.n)
        return NULL;
    return bsearch(&key, t->now.items, t->now.n, sizeof key, by_pid);
}

/* status: what is watched, how fresh it is, and the lives of a target. */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "store/store.h"

#define TARGETS_MAX 4096
#define LIVES_MAX 65536

struct target_status {
    int64_t id, first_ns, last_ns;
    char name[128], selector[256];
    uint64_t samples; /* of processes: the target's own row is none */
    uint64_t running, ended[LIFE_END_N];
};

struct life_status {
    int32_t pid;
    int64_t start_ns, last_ns;
    struct life_end end;
    uint64_t samples;
    int64_t first_mem, last_mem, fds; /* anonymous memory; resident where only that is known */
    char role[ROLE_MAX];
};

struct status {
    char path[PATH_MAX];
    int64_t now_ns;
    struct store_info info;
    struct vec targets;  /* struct target_status */
    struct vec lives;    /* struct life_status, of the target asked for */
    bool keep_lives;
    struct target_status *cur;
    bool cut;            /* more lives than are kept */
};

/* ---- gathering ------------------------------------------------------------------------------------------------ */

static int on_target(void *ctx, const struct target_row *row)
{
    struct status *s = ctx;
    struct target_status *t = vec_push(&s->targets);
    if (!t)
        return LT_ELIMIT;
    *t = (struct target_status){ .id = row->id, .first_ns = row->first_ns, .last_ns = row->last_ns };
    str_copy(t->name, sizeof t->name, row->name);
    str_copy(t->selector, sizeof t->selector, row->selector);
    str_printable(t->name); /* cut or not, whoever wrote them */
    str_printable(t->selector);
    return 0;
}

/* They come oldest first: of the older half those that have ended make room. */
static void forget_oldest(struct status *s)
{
    struct life_status *l = s->lives.items;
    size_t kept = 0;
    for (size_t i = 0; i < s->lives.n; i++)
        if (i >= s->lives.n / 2 || l[i].end.cause == LIFE_RUNNING)
            l[kept++] = l[i];
    s->cut = true;
    s->lives.n = kept;
}

static int on_life(void *ctx, const struct life_row *row)
{
    struct status *s = ctx;
    if (!row->info.key.pid)
        return 0; /* the target's own row is no process */
    s->cur->samples += row->samples;
    if (row->end.cause == LIFE_RUNNING)
        s->cur->running++;
    else if (row->end.cause < LIFE_END_N)
        s->cur->ended[row->end.cause]++;
    if (s->keep_lives && s->lives.n == s->lives.max)
        forget_oldest(s);
    struct life_status *l = s->keep_lives ? vec_push(&s->lives) : NULL;
    s->cut |= s->keep_lives && !l;
    if (l) {
        enum metric_id mem = row->first[METRIC_RSS_ANON] != METRIC_NA ? METRIC_RSS_ANON : METRIC_RSS;
        *l = (struct life_status){ row->info.key.pid, row->info.start_wall_ns, row->last_ns, row->end, row->samples,
                                   row->first[mem], row->last[mem], row->last[METRIC_FDS], "" };
        str_copy(l->role, sizeof l->role, *row->info.role ? row->info.role : row->info.comm);
        str_printable(l->role);
    }
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct life_status *x = a, *y = b;
    bool rx = x->end.cause == LIFE_RUNNING, ry = y->end.cause == LIFE_RUNNING;
    if (rx != ry)
        return rx ? -1 : 1;
    return x->start_ns != y->start_ns ? (x->start_ns > y->start_ns ? -1 : 1) : x->pid - y->pid;
}

static int gather(struct status *s, struct store *store, const char *target, struct err *err)
{
    int64_t id = 0;
    int r = target ? store_find_target(store, target, &id, err) : 0;
    if (!r)
        r = store_info(store, &s->info, err);
    if (!r)
        r = store_each_target(store, on_target, s, err);
    if (r)
        return r;
    s->keep_lives = target != NULL;
    VEC_EACH(struct target_status, t, &s->targets) {
        s->cur = t;
        if (target && t->id != id)
            continue;
        r = store_each_life(store, t->id, 0, INT64_MAX, on_life, s, err);
        if (r)
            return r;
    }
    if (target) { /* only that one is shown */
        size_t i = 0;
        while (i < s->targets.n && ((struct target_status *)vec_at(&s->targets, i))->id != id)
            i++;
        if (i < s->targets.n)
            *(struct target_status *)vec_at(&s->targets, 0) = *(struct target_status *)vec_at(&s->targets, i);
        s->targets.n = i < s->targets.n;
    }
    if (s->lives.n)
        qsort(s->lives.items, s->lives.n, sizeof(struct life_status), by_start);
    return 0;
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static json_t *number(int64_t v)
{
    return v == METRIC_NA ? json_null() : json_integer(v);
}

static json_t *life_json(const struct life_status *l)
{
    bool running = l->end.cause == LIFE_RUNNING;
    json_t *o = json_pack("{s:o, s:o, s:o, s:s, s:I, s:s, s:o, s:o, s:o}", "pid",
                          l->pid == PID_UNKNOWN ? json_null() : json_integer(l->pid), "start", cmd_json_time(l->start_ns), "end",
                          running ? json_null() : cmd_json_time(l->end.wall_ns), "cause", life_end_name(l->end.cause), "samples",
                          (json_int_t)l->samples, "role", l->role, "start_rss", number(l->first_mem), "end_rss",
                          number(l->last_mem), "fds", number(l->fds));
    if (o && l->end.cause == LIFE_EXITED)
        json_object_set_new(o, "exit_code", json_integer(l->end.exit_code));
    if (o && (l->end.cause == LIFE_SIGNALED || l->end.cause == LIFE_OOM))
        json_object_set_new(o, "signal", json_integer(l->end.signal));
    return o;
}

static json_t *target_json(const struct status *s, const struct target_status *t)
{
    json_t *ended = json_object();
    for (int c = LIFE_RUNNING + 1; c < LIFE_END_N; c++)
        if (t->ended[c])
            json_object_set_new(ended, life_end_name((enum life_end_cause)c), json_integer((json_int_t)t->ended[c]));
    json_t *age = t->last_ns == CLOCK_INVALID ? json_null() : json_real((double)(s->now_ns - t->last_ns) / 1e9);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:o}", "name", t->name, "selector", t->selector, "first",
                     cmd_json_time(t->first_ns), "last", cmd_json_time(t->last_ns), "age_s", age, "samples", (json_int_t)t->samples,
                     "running", (json_int_t)t->running, "ended", ended);
}

static json_t *status_json(const struct status *s)
{
    json_t *targets = json_array(), *lives = json_array();
    VEC_EACH(const struct target_status, t, &s->targets)
        json_array_append_new(targets, target_json(s, t));
    VEC_EACH(const struct life_status, l, &s->lives)
        json_array_append_new(lives, life_json(l));
    json_t *doc = json_pack("{s:o, s:o, s:I, s:o, s:o}", "store", cmd_json_text(s->path), "now", cmd_json_time(s->now_ns), "store_bytes",
                            (json_int_t)s->info.file_bytes + (json_int_t)s->info.wal_bytes, "watcher_pid",
                            s->info.watcher_pid ? json_integer(s->info.watcher_pid) : json_null(), "targets", targets);
    if (doc && s->keep_lives)
        json_object_set_new(doc, "lives", lives);
    else
        json_decref(lives);
    return doc;
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

/* Text cut to `cells`, its end shown by "~". */
static const char *cut(const char *s, size_t cells, char out[256])
{
    size_t n = str_copy(out, 256, s);
    if (n < 256 && str_width(out) <= cells)
        return out;
    n = MIN(n, (size_t)254);
    for (out[n] = '\0'; n && ((((unsigned char)s[n] & 0xc0) == 0x80) || str_width(out) > cells - 1);)
        out[--n] = '\0';
    str_copy(out + n, 256 - n, "~");
    return out;
}

static void ended_text(const struct target_status *t, char *out, size_t size)
{
    uint64_t all = 0;
    size_t n = 0;
    for (int c = LIFE_RUNNING + 1; c < LIFE_END_N; c++)
        all += t->ended[c];
    n += str_fmt(out, size, "%" PRIu64, all);
    for (int c = LIFE_RUNNING + 1, first = 1; c < LIFE_END_N; c++) {
        if (!t->ended[c])
            continue;
        n += str_fmt(out + n, size - n, "%s%s %" PRIu64, first ? " (" : ", ", life_end_name((enum life_end_cause)c), t->ended[c]);
        first = 0;
    }
    if (all)
        str_fmt(out + n, size - n, ")");
}

/* Requests can be imported for a target that has no sample: its last one is no time to reckon with. */
static void ago_text(const struct status *s, int64_t last_ns, char *out, size_t size)
{
    char age[UNITS_TEXT_MAX];
    bool ahead = last_ns > s->now_ns; /* an imported curve, or a clock that was set back */
    if (last_ns == CLOCK_INVALID)
        str_fmt(out, size, "never");
    else
        str_fmt(out, size, ahead ? "in %s" : "%s ago", units_time(ahead ? last_ns - s->now_ns : s->now_ns - last_ns, age));
}

static void target_line(const struct status *s, const struct target_status *t)
{
    char a[256], b[256], ago[48], count[UNITS_TEXT_MAX], ended[160], c[256];
    ago_text(s, t->last_ns, ago, sizeof ago);
    ended_text(t, ended, sizeof ended);
    printf("%-18s %-20s %14s %10s %7" PRIu64 "  %s\n", cut(t->name, 18, a), cut(t->selector, 20, b),
           ago, units_count((double)t->samples, count), t->running, cut(ended, 25, c));
}

static void life_line(const struct life_status *l)
{
    char pid[16] = "-", start[CLOCK_TEXT_MAX], how[48], first[UNITS_TEXT_MAX], last[UNITS_TEXT_MAX], lasted[UNITS_TEXT_MAX], fds[UNITS_TEXT_MAX], role[256];
    bool running = l->end.cause == LIFE_RUNNING;
    int64_t end = running ? l->last_ns : l->end.wall_ns;
    if (l->pid != PID_UNKNOWN)
        str_fmt(pid, sizeof pid, "%d", l->pid);
    str_fmt(how, sizeof how, "%s", life_end_name(l->end.cause));
    if (l->end.cause == LIFE_EXITED)
        str_fmt(how, sizeof how, "exit %d", l->end.exit_code);
    else if (l->end.cause == LIFE_SIGNALED)
        str_fmt(how, sizeof how, "signal %d", l->end.signal);
    printf("%8s %-20s %8s %-10s %9s %9s %6s  %s\n", pid, clock_rfc3339(l->start_ns / NS_PER_S * NS_PER_S, start),
           end == CLOCK_INVALID ? "-" : units_time(end - l->start_ns, lasted), how,
           l->first_mem == METRIC_NA ? "-" : units_bytes((double)l->first_mem, first),
           l->last_mem == METRIC_NA ? "-" : units_bytes((double)l->last_mem, last),
           l->fds == METRIC_NA ? "-" : units_count((double)l->fds, fds), cut(l->role, 22, role));
}

static void life_table(const struct status *s, int64_t most)
{
    printf("\n%8s %-20s %8s %-10s %9s %9s %6s  %s\n", "PID", "STARTED", "LASTED", "HOW", "MEM FIRST", "MEM LAST", "FDS", "WHAT");
    int64_t shown = 0;
    VEC_EACH(const struct life_status, l, &s->lives) {
        if (shown++ == most)
            break;
        life_line(l);
    }
    if ((int64_t)s->lives.n > most)
        printf("%zu more ended before; --lives N shows them\n", s->lives.n - (size_t)most);
    if (s->cut)
        printf("of the processes that have ended only the last ones are listed\n");
}

static void status_text(const struct status *s, const struct args *args)
{
    char size[UNITS_TEXT_MAX];
    printf("%s: %s, ", s->path, units_bytes((double)(s->info.file_bytes + s->info.wal_bytes), size));
    if (s->info.watcher_pid)
        printf("written by process %d\n\n", s->info.watcher_pid);
    else
        printf("no watcher is running\n\n");
    if (!s->targets.n) {
        printf("no target yet; lowtide watch NAME=SELECTOR makes one\n");
        return;
    }
    printf("%-18s %-20s %14s %10s %7s  %s\n", "TARGET", "SELECTOR", "LAST SAMPLE", "SAMPLES", "RUNNING", "ENDED");
    VEC_EACH(const struct target_status, t, &s->targets)
        target_line(s, t);
    if (s->keep_lives)
        life_table(s, args_num(args, "lives", 20));
}

/* ---- the verb ------------------------------------------------------------------------------------------------- */

static int status_run(const struct args *args, struct err *err)
{
    _cleanup_mem_ struct status *s = mem_zalloc(1, sizeof *s);
    struct store *store;
    int r;
    if (!s)
        return err_set(err, LT_ENOMEM, "the answer: no memory for it; free some and try again");
    vec_init(&s->targets, sizeof(struct target_status), TARGETS_MAX);
    vec_init(&s->lives, sizeof(struct life_status), LIVES_MAX);
    s->now_ns = clock_wall_ns();
    if (args_num(args, "lives", 0) < 0)
        r = err_set(err, LT_EUSAGE, "--lives %s: below 0; write a number such as 20", args_str(args, "lives"));
    else
        r = cmd_db_path(args, false, s->path, sizeof s->path, err);
    if (!r)
        r = cmd_open_store(args, &store, err);
    if (!r) {
        r = gather(s, store, args->npos ? args->pos[0] : NULL, err);
        store_close(store, NULL);
    }
    if (!r && args->json)
        r = cmd_print_json(status_json(s), err);
    else if (!r)
        status_text(s, args);
    vec_release(&s->targets);
    vec_release(&s->lives);
    return r;
}

static const struct cmd_pos status_pos[] = { { "TARGET", "target", true, false }, { 0 } };
static const struct opt status_opts[] = {
    { .name = "lives", .type = OPT_INT, .arg = "N", .preset = "20", .help = "With a target: how many of its processes to show." },
    { 0 },
};
static const char *const status_examples[] = {
    "lowtide status", "All targets: last sample, processes running and ended.",
    "lowtide status api --json", "One target and each of its processes, as JSON.",
    NULL,
};

const struct cmd cmd_status = {
    .name = "status",
    .brief = "the targets, their last sample, their processes, the size of the store",
    .description =
        "A process counts as running when the last sweep saw it. How a process ended is one of exit, signal, oom (killed by the "
        "kernel for memory), vanished (gone between two looks), unwatched (it ran when the watch ended), reboot and imported.",
    .examples = status_examples,
    .pos = status_pos,
    .opts = status_opts,
    .run = status_run,
};

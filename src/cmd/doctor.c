/* doctor: a minute on a live process, without a store: what grew, which descriptors, a first verdict. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/doctor_look.h"

#define TEXT_MAX ((size_t)1 << 20)
#define DIRS_MAX 64
#define LOOKS 12 /* at paths and peers, over the whole time */

struct plan {
    int32_t pid;
    char name[64];
    int64_t length_ns, interval_ns;
    const char *tmp[DIRS_MAX];
    size_t ntmp;
};

static int read_plan(const struct args *args, struct plan *p, struct err *err)
{
    struct life_key key;
    const char *dir, *text = args->pos[0];
    size_t pos = 0;
    int64_t pid;

    if (str_starts(text, "pid:"))
        text += 4;
    if (units_int(text, strlen(text), &pid) || pid < 1 || pid > INT32_MAX)
        return err_set(err, LT_EUSAGE, "%s: not a process id; give a number, as ps shows it", args->pos[0]);
    p->pid = (int32_t)pid;
    p->length_ns = args_num(args, "for", 60 * NS_PER_S);
    if (p->length_ns < NS_PER_S)
        return err_set(err, LT_EUSAGE, "--for: a look of less than a second sees nothing; give 1s or more");
    p->interval_ns = args_num(args, "interval", MAX(p->length_ns / 120, 20 * NS_PER_MS));
    if (p->interval_ns < 20 * NS_PER_MS || p->interval_ns > p->length_ns / 10)
        return err_set(err, LT_EUSAGE, "--interval: between 20ms and a tenth of --for; leave it out for the best one");
    while ((dir = args_next(args, "tmp", &pos))) {
        if (p->ntmp == DIRS_MAX)
            return err_set(err, LT_EUSAGE, "--tmp: more than %d folders; give fewer", DIRS_MAX);
        p->tmp[p->ntmp++] = dir;
    }
    return life_of_pid("/proc", p->pid, &key, err);
}

/* ---- watching ------------------------------------------------------------------------------------------------- */

/* Waits until then, taking events as they come: 0, or LT_EINTR when stopped. */
static int wait_for(struct watch *w, int64_t until)
{
    struct err err = { 0 };

    for (;;) {
        struct pollfd p[2] = { { .fd = cmd_signal_fd(), .events = POLLIN }, { .fd = watch_event_fd(w), .events = POLLIN } };
        int64_t left = until - clock_mono_ns();

        if (cmd_stopped())
            return LT_EINTR;
        if (left <= 0)
            return 0;
        if (poll(p, 2, (int)((left + NS_PER_MS - 1) / NS_PER_MS)) > 0 && p[1].revents)
            watch_events(w, &err);
    }
}

static void progress(const struct plan *p, int64_t begin, int64_t *said)
{
    int64_t done = clock_mono_ns() - begin;

    if (done - *said < 15 * NS_PER_S)
        return;
    *said = done;
    log_info("%lld of %lld s", (long long)(done / NS_PER_S), (long long)(p->length_ns / NS_PER_S));
}

/* Sweeps until the time is over, the process is gone, or somebody says stop; what there is then is judged. */
static int watch_it(struct watch *w, const struct plan *p, struct look *l, int64_t *ret_watched_ns, struct err *err)
{
    int64_t begin = clock_mono_ns(), next = begin, said = 0;
    struct sweep sweep;
    int r = 0;

    while (!r && next - begin <= p->length_ns) {
        l->sweep_ns = clock_wall_ns();
        r = watch_sweep(w, l->sweep_ns, &sweep, err);
        if (!r && !sweep.n)
            break;
        if (!r)
            r = look_put(l, &sweep);
        *ret_watched_ns = clock_mono_ns() - begin;
        next += p->interval_ns;
        progress(p, begin, &said);
        if (!r && wait_for(w, next))
            break;
    }
    return r == LT_ELIMIT && l->full ? 0 : r;
}

static int take_look(const struct plan *p, struct look *l, int64_t *ret_watched_ns, struct err *err)
{
    struct watch_config config = { .proc_root = "/proc", .cgroup_root = "/sys/fs/cgroup", .tmp_dirs = p->tmp, .ntmp = p->ntmp, .kinds_every = 1 };
    struct watch_sink sink = look_sink(l);
    struct watch *w = NULL;
    char selector[32];
    int r;

    config.slow_every = (unsigned)MAX(p->length_ns / p->interval_ns / LOOKS, INT64_C(1));
    str_fmt(selector, sizeof selector, "pid:%d", (int)p->pid);
    r = watch_open(&w, &config, &sink, err);
    if (!r)
        r = watch_add(w, selector, selector, 1, err);
    if (!r)
        r = watch_it(w, p, l, ret_watched_ns, err);
    watch_close(w);
    return r;
}

/* ---- judging -------------------------------------------------------------------------------------------------- */

static int show(const struct args *args, const struct verdict *v, const struct output_doctor *d, struct err *err)
{
    struct output_options o = { .colored = term_colored(STDOUT_FILENO), .explain = args_flag(args, "explain") };
    _cleanup_buf_ struct buf out;
    int r;

    buf_init(&out, TEXT_MAX);
    if (args->json)
        return cmd_print_json(output_doctor_json(v, d), err);
    r = output_doctor_text(&out, v, d, &o);
    if (r)
        return err_set(err, r, "the answer: %s; free some memory and try again", err_sentence(r));
    fwrite(out.p, 1, out.len, stdout);
    return 0;
}

static size_t processes_left(const struct look *l)
{
    size_t n = 0;

    VEC_EACH(struct life_row, row, &l->lives)
        n += row->info.key.pid > 0 && row->end.cause == LIFE_RUNNING;
    return n;
}

/* How the process ended during the look, as one more thing that could not be looked at. */
static void note_end(struct look *l, int32_t pid)
{
    VEC_EACH(struct life_row, row, &l->lives)
        if (row->info.key.pid == pid && row->end.cause != LIFE_RUNNING && l->nmissing < LOOK_MISSING_MAX) {
            str_fmt(l->missing_text[l->nmissing], sizeof l->missing_text[0], "the rest of the time: process %d ended (%s)", (int)pid,
                    life_end_name(row->end.cause));
            l->missing[l->nmissing] = l->missing_text[l->nmissing];
            l->nmissing++;
            return;
        }
}

static const char *name_of(const struct look *l, int32_t pid)
{
    VEC_EACH(struct life_row, row, &l->lives)
        if (row->info.key.pid == pid)
            return row->info.role[0] ? row->info.role : row->info.comm;
    return "?";
}

static int judge(const struct args *args, const struct plan *p, struct look *l, int64_t watched_ns, struct err *err)
{
    struct analysis_options o = { .steady = true, .brief = true };
    struct output_doctor d = { .pid = p->pid, .name = name_of(l, p->pid), .seconds = (double)watched_ns / 1e9, .missing = l->missing };
    _cleanup_series_ struct series *s = NULL;
    _cleanup_analysis_ struct analysis *a = NULL;
    _cleanup_verdict_ struct verdict *v = NULL;
    char name[32];
    int r;

    str_fmt(name, sizeof name, "pid:%d", (int)p->pid);
    r = look_series(l, name, &s);
    if (!r)
        r = analysis_run(&a, s, &o);
    if (!r)
        r = verdict_decide(&v, a);
    if (!r)
        r = look_changes(l);
    if (r == LT_ENODATA)
        return err_set(err, LT_GONE, "%d: the process ended before it could be looked at; name one that runs", (int)p->pid);
    if (r)
        return err_set(err, r, "%d: %s; give a shorter --for", (int)p->pid, err_sentence(r));
    note_end(l, p->pid);
    d.processes = processes_left(l);
    d.changes = l->changes.items;
    d.n = l->changes.n;
    r = show(args, v, &d, err);
    return r ? r : verdict_exit_status(v->verdict);
}

static int run(const struct args *args, struct err *err)
{
    struct plan p = { 0 };
    struct look l;
    int64_t watched_ns = 0;
    int r = read_plan(args, &p, err);

    if (r)
        return r;
    r = look_init(&l);
    if (r)
        err_set(err, r, "out of memory; free some and try again");
    else
        r = take_look(&p, &l, &watched_ns, err);
    if (!r)
        r = judge(args, &p, &l, watched_ns, err);
    look_release(&l);
    return r;
}

static const char *const examples[] = {
    "lowtide doctor 4711", "watches process 4711 and its children for a minute",
    "lowtide doctor 4711 --for 5m --tmp /tmp", "five minutes, and the files in /tmp count",
    NULL,
};

static const struct cmd_pos pos[] = { { "PID", "pid", false, false }, { 0 } };

static const struct opt opts[] = {
    { .name = "for", .type = OPT_DURATION, .arg = "DURATION", .preset = "60s", .help = "How long to look." },
    { .name = "interval", .type = OPT_DURATION, .arg = "DURATION", .help = "Time between two samples; 120 of them when not given." },
    { .name = "tmp", .type = OPT_PATH, .arg = "DIR", .many = true, .help = "A temp folder that counts for the process." },
    { .name = "explain", .type = OPT_FLAG, .help = "Show every number that led to the verdicts." },
    { 0 },
};

const struct cmd cmd_doctor = {
    .name = "doctor",
    .brief = "a minute on a live process: what grows, and a first verdict",
    .description =
        "Samples a process and its children for a minute, without stopping or tracing it and without a store, and says what grew: memory, "
        "descriptors by kind, path and peer, threads, children, files. Counts that rise evenly by ten or more are called a leak; memory is "
        "at most suspect, since allocators and caches look like leaks over a minute. Ctrl-C ends it early and judges what there is.\n\n"
        "Of processes of other users only memory and threads can be read; root, or CAP_SYS_PTRACE, is needed for their descriptors.",
    .examples = examples,
    .pos = pos,
    .opts = opts,
    .run = run,
};

/* From series to target: the heaviest verdict wins, and the reason names the series that says most. */
#include "verdict/parts.h"

static const int weights[VERDICT_N] = {
#define X(id, name, exit_status, weight, title) weight,
    VERDICTS(X)
#undef X
};

/* When several grow together they are one story; it is told by the first of these. */
static const enum metric_id telling[] = {
    METRIC_ZOMBIES, METRIC_ORPHANS, METRIC_CHILDREN, METRIC_SHM_SEGMENTS, METRIC_TMPFILES, METRIC_THREADS,
    METRIC_SUSPENDED, METRIC_TCP_CLOSE_WAIT, METRIC_CONNECTIONS, METRIC_SOCKETS_NO_ROW, METRIC_UNIX_SOCKETS,
    METRIC_SOCKETS, METRIC_PIPES, METRIC_FILES, METRIC_FDS_DELETED, METRIC_ANON_INODES, METRIC_FDS,
    METRIC_LIVE_OBJECTS, METRIC_SHM_BYTES, METRIC_TMP_BYTES, METRIC_HEAP_USED, METRIC_RSS_ANON, METRIC_RSS_SHMEM,
    METRIC_RSS, METRIC_SWAP,
};

/* rss adds file pages to rss_anon and tells nothing more; it decides only where it is all there is. */
static bool decides(enum metric_id m, const struct analysis *a)
{
    return m != METRIC_RSS || !analysis_find(a, METRIC_RSS_ANON);
}

/* A series that is short of data counts against the target only when it is one that every service has. */
static bool required(enum metric_id m)
{
    return m == METRIC_RSS_ANON || m == METRIC_RSS || m == METRIC_FDS || m == METRIC_THREADS || m == METRIC_CHILDREN;
}

static int weight_of(const struct series_verdict *s)
{
    if (!s->decides || (s->verdict == VERDICT_INSUFFICIENT && !required(s->finding->metric)))
        return -1;
    return weights[s->verdict];
}

static size_t rank_of(enum metric_id m)
{
    for (size_t i = 0; i < ARRAY_SIZE(telling); i++)
        if (telling[i] == m)
            return i;
    return ARRAY_SIZE(telling);
}

static void choose(struct verdict *v)
{
    int best = -1;

    for (size_t i = 0; i < v->n; i++) {
        int weight = weight_of(&v->series[i]);

        if (weight < best || weight < 0)
            continue;
        if (weight == best && rank_of(v->series[i].finding->metric) > rank_of(v->series[v->named].finding->metric))
            continue;
        best = weight;
        v->named = i;
    }
}

/* The other series of the same verdict, as ", and so do fds, sockets". */
static void others(const struct verdict *v, char *out, size_t size)
{
    size_t n = 0, at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < v->n && n < 6; i++) {
        const struct series_verdict *s = &v->series[i];

        if (i == v->named || s->verdict != v->verdict || !s->decides)
            continue;
        at += str_fmt(out + at, size - at, "%s%s", n++ ? ", " : "; so do ", metrics[s->finding->metric].name);
    }
}

/* A process of the target that still runs, the longest there; 0: none. */
static int32_t running_pid(const struct series *s)
{
    const struct series_life *best = NULL;

    VEC_EACH(struct series_life, l, &s->lives)
        if (l->root && !l->whole && l->end.cause == LIFE_RUNNING && l->key.pid > 0 && (!best || l->samples > best->samples))
            best = l;
    return best ? best->key.pid : 0;
}

static void next_step(struct verdict *v)
{
    const struct series *s = v->analysis->series;
    const struct series_verdict *named = &v->series[v->named];
    int32_t pid = running_pid(s);

    if (v->verdict != VERDICT_LEAK && v->verdict != VERDICT_EXTERNAL)
        str_copy(v->next, sizeof v->next, named->next);
    else if (v->analysis->options.brief && pid)
        str_fmt(v->next, sizeof v->next, "lowtide watch --target NAME=pid:%d, then lowtide diagnose NAME: how much for each request", (int)pid);
    else if (v->analysis->options.brief)
        str_copy(v->next, sizeof v->next, "lowtide watch --target NAME=SELECTOR, then lowtide diagnose NAME: how much for each request");
    else if (pid)
        str_fmt(v->next, sizeof v->next, "lowtide doctor %d", (int)pid);
    else
        str_fmt(v->next, sizeof v->next, "lowtide diagnose %s --series %s --explain", s->target, metrics[named->finding->metric].name);
}

static void nothing_measured(struct verdict *v)
{
    v->verdict = VERDICT_INSUFFICIENT;
    str_copy(v->reason, sizeof v->reason, "nothing that can be judged was measured in this window");
    str_fmt(v->next, sizeof v->next, "lowtide status");
}

/* Nothing grows: how many series that was, and memory, which is what people look at first. */
static void reassure(struct verdict *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        enum metric_id m = v->series[i].finding->metric;

        n += verdict_exit_status(v->series[i].verdict) == 0;
        if (v->series[i].verdict == v->verdict && (m == METRIC_RSS_ANON || (m == METRIC_RSS && v->series[v->named].finding->metric != METRIC_RSS_ANON)))
            v->named = i;
    }
    str_fmt(v->reason, sizeof v->reason, "none of %zu series grows; %s", n, v->series[v->named].reason);
}

/* A look that saw no descriptors, or a process that did nothing, cannot say that nothing grows. */
static void doubt_brief(struct verdict *v)
{
    const struct finding *any = v->n ? v->series[0].finding : NULL;
    const struct column *cpu = &v->analysis->series->sum.col[METRIC_CPU_NS];

    if (!v->analysis->options.brief || verdict_exit_status(v->verdict) != 0 || v->analysis->options.metrics)
        return;
    if (!analysis_find(v->analysis, METRIC_FDS)) {
        v->verdict = VERDICT_INSUFFICIENT;
        str_copy(v->reason, sizeof v->reason, "its descriptors could not be read, and they are where most leaks show first");
        str_copy(v->next, sizeof v->next, "run as root, or with CAP_SYS_PTRACE");
    } else if (any && cpu->n && (any->load.source == LOAD_NONE || any->load.per_s < 2e6)) {
        v->verdict = VERDICT_INSUFFICIENT;
        str_copy(v->reason, sizeof v->reason, "the process did next to nothing in that time, and what does nothing leaks nothing");
        str_copy(v->next, sizeof v->next, "look again while it has traffic");
    }
}

static void summarise(struct verdict *v)
{
    char also[200];
    const struct series_verdict *named;

    v->named = SIZE_MAX;
    choose(v);
    if (v->named == SIZE_MAX) {
        nothing_measured(v);
        return;
    }
    named = &v->series[v->named];
    v->verdict = named->verdict;
    v->class = named->class;
    others(v, also, sizeof also);
    if (v->verdict == VERDICT_OK || v->verdict == VERDICT_BOUNDED)
        reassure(v);
    else
        str_fmt(v->reason, sizeof v->reason, "%s%s", named->reason, v->verdict == VERDICT_LEAK || v->verdict == VERDICT_EXTERNAL ? also : "");
    next_step(v);
    doubt_brief(v);
}

int verdict_decide(struct verdict **ret, const struct analysis *a)
{
    struct verdict *v = mem_zalloc(1, sizeof *v);

    if (!v)
        return LT_ENOMEM;
    v->analysis = a;
    for (size_t i = 0; i < a->n; i++) {
        struct series_verdict *s = &v->series[v->n++];

        s->finding = &a->finding[i];
        s->per_hour = s->finding->per_hour;
        s->per_kreq = s->finding->per_kreq;
        s->decides = decides(s->finding->metric, a);
        if (metrics[s->finding->metric].judge == METRIC_JUDGE_MEMORY)
            decide_memory(s, a);
        else
            decide_count(s, a);
    }
    summarise(v);
    *ret = v;
    return 0;
}

void verdict_free(struct verdict *v)
{
    mem_free(v);
}

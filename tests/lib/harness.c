#include "lib/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

#define LIST_MAX 4096

/* Numbers found in a folder of /proc, in the order found. */
struct numbers {
    long v[LIST_MAX];
    size_t n;
};

/* What a case has to leave as it found it. */
struct belongings {
    struct numbers fds, threads, children;
    int64_t heap_blocks;
};

int64_t harness_settle_ns = 5 * NS_PER_S;

static size_t cases_passed;
static char tmpdir[PATH_MAX]; /* of the case that runs; "" when it asked for none */

static void numbers_add(struct numbers *list, long v)
{
    if (list->n == LIST_MAX)
        fail_msg("harness: more than %d entries to keep account of", LIST_MAX);
    list->v[list->n++] = v;
}

static bool numbers_has(const struct numbers *list, long v)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == v)
            return true;
    return false;
}

static void list_folder(const char *path, bool skip_own_fd, struct numbers *ret)
{
    DIR *d = opendir(path);
    struct dirent *e;

    ret->n = 0;
    if (!d) {
        fail_msg("harness: cannot read %s: %s", path, strerror(errno));
        return;
    }
    while ((e = readdir(d))) {
        int64_t v;

        if (units_int(e->d_name, strlen(e->d_name), &v) == 0 && !(skip_own_fd && v == dirfd(d)))
            numbers_add(ret, (long)v);
    }
    closedir(d);
}

/* Children of every thread, dead ones too. Where the kernel keeps no such list, one made-up pid 0 stands for "some". */
static void list_children(const struct numbers *threads, struct numbers *ret)
{
    siginfo_t info;
    bool listed = false;

    ret->n = 0;
    for (size_t i = 0; i < threads->n; i++) {
        char path[64], text[65536];
        struct slice rest, part;

        str_fmt(path, sizeof path, "/proc/self/task/%ld/children", threads->v[i]);
        if (fd_read_at(AT_FDCWD, path, text, sizeof text) < 0)
            continue;
        listed = true;
        rest = (struct slice){ text, strlen(text) };
        while (slice_next(&rest, ' ', &part)) {
            int64_t pid;

            if (units_int(part.p, part.len, &pid) == 0)
                numbers_add(ret, (long)pid);
        }
    }
    if (!listed && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        numbers_add(ret, 0);
}

static void take_stock(struct belongings *b)
{
    list_folder("/proc/self/fd", true, &b->fds);
    list_folder("/proc/self/task", false, &b->threads);
    list_children(&b->threads, &b->children);
    b->heap_blocks = mem_live_blocks();
}

static size_t describe_fds(const struct numbers *before, const struct numbers *after, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < after->n; i++) {
        char link[64], target[PATH_MAX];
        ssize_t len;

        if (numbers_has(before, after->v[i]))
            continue;
        str_fmt(link, sizeof link, "/proc/self/fd/%ld", after->v[i]);
        len = readlink(link, target, sizeof target - 1);
        target[len < 0 ? 0 : len] = '\0';
        n += str_fmt(out + n, size - n, " fd %ld (%s)", after->v[i], target);
    }
    for (size_t i = 0; i < before->n; i++)
        if (!numbers_has(after, before->v[i]))
            n += str_fmt(out + n, size - n, " fd %ld (closed, but not ours)", before->v[i]);
    return n;
}

static size_t describe_new(const char *what, const struct numbers *before, const struct numbers *after, char *out,
                           size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < after->n; i++)
        if (!numbers_has(before, after->v[i]))
            n += str_fmt(out + n, size - n, " %s %ld", what, after->v[i]);
    return n;
}

/* What is there now and was not before, as text; "" when all is back. */
static void compare(const struct belongings *before, char *out, size_t size)
{
    static struct belongings now;
    size_t n = 0;

    take_stock(&now);
    out[0] = '\0';
    n += describe_fds(&before->fds, &now.fds, out + n, size - n);
    n += describe_new("thread", &before->threads, &now.threads, out + n, size - n);
    n += describe_new("child", &before->children, &now.children, out + n, size - n);
    if (now.heap_blocks != before->heap_blocks)
        str_fmt(out + n, size - n, " %+lld heap block(s)", (long long)(now.heap_blocks - before->heap_blocks));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int drop_tmpdir(void **state)
{
    int r = 0;

    (void)state;
    mem_fail_nth(0); /* still armed when a sweep failed half-way */
    if (tmpdir[0])
        r = nftw(tmpdir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    tmpdir[0] = '\0';
    return r;
}

const char *harness_tmpdir(void)
{
    const char *root = getenv("TMPDIR");

    if (!tmpdir[0]) {
        str_fmt(tmpdir, sizeof tmpdir, "%s/lowtide-test-XXXXXX", root && root[0] ? root : "/tmp");
        if (!mkdtemp(tmpdir)) {
            tmpdir[0] = '\0';
            fail_msg("harness: no temp folder: %s", strerror(errno));
        }
    }
    return tmpdir;
}

/* cmocka runs this for every case; the case itself comes in as its initial state. */
static void run_case(void **state)
{
    static struct belongings before;
    static char left[4096];
    const struct harness_case *c = *state;
    void *own_state = NULL;
    int64_t until;

    take_stock(&before);
    c->fn(&own_state);
    /* A joined thread is in /proc for a moment longer: what goes by itself is not left behind. */
    until = clock_mono_ns() + harness_settle_ns;
    for (;;) {
        compare(&before, left, sizeof left);
        if (!left[0]) {
            cases_passed++;
            return;
        }
        if (clock_mono_ns() > until)
            fail_msg("%s left behind:%s", c->name, left);
        usleep(1000);
    }
}

#ifdef __SANITIZE_THREAD__
static void *end_at_once(void *arg)
{
    return arg;
}

/* ThreadSanitizer starts a thread of its own with the program's first one: before the first case, not in it. */
static void let_sanitizer_start(void)
{
    pthread_t t;

    if (pthread_create(&t, NULL, end_at_once, NULL) == 0)
        pthread_join(t, NULL);
}
#else
static void let_sanitizer_start(void)
{
}
#endif

int harness_main(int argc, char **argv, const struct harness_case *cases, size_t n)
{
    struct CMUnitTest *tests = mem_zalloc(n, sizeof *tests);
    size_t chosen = 0;
    int failed;

    if (!tests)
        return 1;
    cases_passed = 0; /* its own test runs this in a fork of itself */
    let_sanitizer_start();
    for (size_t i = 0; i < n; i++)
        if (argc < 2 || strstr(cases[i].name, argv[1])) {
            union { const void *in; void *out; } as_state = { &cases[i] };

            tests[chosen++] = (struct CMUnitTest){ cases[i].name, run_case, NULL, drop_tmpdir, as_state.out };
        }
    failed = chosen ? _cmocka_run_group_tests(argv[0], tests, chosen, NULL, NULL) : 0;
    mem_free(tests);
    /* scripts/test adds these lines up. */
    printf("harness: %zu passed, %d failed, %zu skipped\n", cases_passed, failed, chosen - (size_t)failed - cases_passed);
    if (!chosen)
        fprintf(stderr, "harness: no case to run\n");
    return failed || !chosen;
}

#define SWEEP_MAX 100000

void harness_sweep_allocs(int (*fn)(void *ctx), void *ctx)
{
    for (uint64_t nth = 1; nth <= SWEEP_MAX; nth++) {
        int64_t before = mem_live_blocks();
        int r, hit;

        mem_fail_nth(nth);
        r = fn(ctx);
        hit = mem_failed();
        mem_fail_nth(0);
        if (mem_live_blocks() != before)
            fail_msg("sweep: allocation %llu failed, and %lld block(s) are left", (unsigned long long)nth,
                     (long long)(mem_live_blocks() - before));
        if (r != 0 && !(hit && r == LT_ENOMEM))
            fail_msg("sweep: allocation %llu %s, and the call returned %s", (unsigned long long)nth,
                     hit ? "failed" : "was not reached", err_name(r));
        if (!hit)
            return;
    }
    fail_msg("sweep: still allocating after %d failures", SWEEP_MAX);
}

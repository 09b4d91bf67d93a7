/* store verify and store info. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "store/store.h"

static const char *const tier_names[] = { "raw", "5 min", "1 h" };

/* ---- verify --------------------------------------------------------------------------------------------------- */

struct verify { bool json; json_t *lines; size_t n; };

static void on_damage(void *ctx, const char *line)
{
    struct verify *v = ctx;
    v->n++;
    if (v->json)
        json_array_append_new(v->lines, cmd_json_text(line));
    else
        printf("damaged: %s\n", line);
}

static int verify_run(const struct args *args, struct err *err)
{
    struct store *store;
    struct err why = { 0 };
    char path[PATH_MAX];
    struct verify v = { .json = args->json };
    int r = cmd_db_path(args, false, path, sizeof path, err);
    if (!r)
        r = store_open(&store, path, STORE_READ, NULL, err);
    if (r)
        return r;
    if (args->json)
        v.lines = json_array();
    r = store_verify(store, on_damage, &v, &why);
    store_close(store, NULL);
    if (r && r != LT_ECORRUPT) {
        json_decref(v.lines);
        *err = why;
        return r;
    }
    if (args->json) {
        json_t *doc = json_pack("{s:o, s:b, s:o}", "store", cmd_json_text(path), "sound", !r, "damage", v.lines);
        int e = cmd_print_json(doc, err);
        return e ? e : r != 0;
    }
    if (!r)
        printf("%s: sound\n", path);
    else
        printf("%s: damaged in %zu place%s; what is not named above can be read\n", path, v.n, v.n == 1 ? "" : "s");
    return r != 0;
}

static const char *const verify_examples[] = {
    "lowtide store verify", "Check the default store; status 1 and what is lost when it is damaged.",
    NULL,
};

const struct cmd cmd_store_verify = {
    .name = "store verify",
    .brief = "check every byte of the store and say what is lost",
    .description = "Reads the whole store: SQLite's own check, every checksum, every rule of the format. The status is 0 when it is "
                   "sound and 1 when it is damaged; each damage is one line. Nothing is changed.",
    .examples = verify_examples,
    .run = verify_run,
};

/* ---- info ----------------------------------------------------------------------------------------------------- */

static json_t *info_json(const char *path, const struct store_info *i)
{
    json_t *tiers = json_array();
    for (size_t t = 0; t < ARRAY_SIZE(i->tier); t++)
        json_array_append_new(tiers, json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "name", tier_names[t], "chunks",
            (json_int_t)i->tier[t].chunks, "samples", (json_int_t)i->tier[t].samples, "values", (json_int_t)i->tier[t].values,
            "bytes", (json_int_t)i->tier[t].bytes, "from", cmd_json_time(i->tier[t].chunks ? i->tier[t].from_ns : CLOCK_INVALID),
            "to", cmd_json_time(i->tier[t].chunks ? i->tier[t].to_ns : CLOCK_INVALID)));
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o?}", "store", cmd_json_text(path), "schema_version",
        (json_int_t)i->schema_version, "file_bytes", (json_int_t)i->file_bytes, "wal_bytes", (json_int_t)i->wal_bytes,
        "budget_bytes", (json_int_t)i->budget_bytes, "targets", (json_int_t)i->targets, "lives", (json_int_t)i->lives, "events",
        (json_int_t)i->events, "gaps", (json_int_t)i->gaps, "request_rows", (json_int_t)i->request_rows, "histogram_rows",
        (json_int_t)i->histogram_rows, "unsealed_sweeps", (json_int_t)i->sweeps, "tiers", tiers, "watcher_pid",
        i->watcher_pid ? json_integer(i->watcher_pid) : json_null());
}

static void info_text(const char *path, const struct store_info *i)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX], from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];
    printf("%s\n", path);
    printf("  file %s, log %s, of at most %s; format %lld\n", units_bytes((double)i->file_bytes, a), units_bytes((double)i->wal_bytes, b),
           units_bytes((double)i->budget_bytes, c), (long long)i->schema_version);
    printf("  %llu targets, %llu lives, %llu events, %llu gaps, %llu request rows, %llu histogram rows\n",
           (unsigned long long)i->targets, (unsigned long long)i->lives, (unsigned long long)i->events, (unsigned long long)i->gaps,
           (unsigned long long)i->request_rows, (unsigned long long)i->histogram_rows);
    printf("  %-6s %12s %14s %10s %8s  %-20s %s\n", "tier", "rows", "values", "bytes", "B/value", "from", "to");
    for (size_t t = 0; t < ARRAY_SIZE(i->tier); t++) {
        bool any = i->tier[t].chunks > 0;
        printf("  %-6s %12llu %14llu %10s %8.2f  %-20s %s\n", tier_names[t], (unsigned long long)i->tier[t].samples,
               (unsigned long long)i->tier[t].values, units_bytes((double)i->tier[t].bytes, a),
               i->tier[t].values ? (double)i->tier[t].bytes / (double)i->tier[t].values : 0.0,
               any ? clock_rfc3339(i->tier[t].from_ns / NS_PER_S * NS_PER_S, from) : "-",
               any ? clock_rfc3339(i->tier[t].to_ns / NS_PER_S * NS_PER_S, to) : "-");
    }
    printf("  %llu sweeps are not sealed yet\n", (unsigned long long)i->sweeps);
    if (i->watcher_pid)
        printf("  a watcher is writing: process %d\n", i->watcher_pid);
    else
        printf("  no watcher is running\n");
}

static int info_run(const struct args *args, struct err *err)
{
    struct store *store;
    struct store_info info;
    char path[PATH_MAX];
    int r = cmd_db_path(args, false, path, sizeof path, err);
    if (!r)
        r = cmd_open_store(args, &store, err);
    if (r)
        return r;
    r = store_info(store, &info, err);
    store_close(store, NULL);
    if (r)
        return r;
    if (args->json)
        return cmd_print_json(info_json(path, &info), err);
    info_text(path, &info);
    return 0;
}

static const char *const info_examples[] = {
    "lowtide store info --json", "How large the default store is and what it holds.",
    NULL,
};

const struct cmd cmd_store_info = {
    .name = "store info",
    .brief = "sizes and tiers of the store",
    .description = "Bytes on disk, what is in the store, and how many rows each tier holds for which span: "
                   "one for each sample of a process, and one for each sweep of a target as a whole.",
    .examples = info_examples,
    .run = info_run,
};

/* Opening: folders and files one may not write to, newer versions, databases of others, definitions that were changed. */
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/parts.h"
#include "store/test_kit.h"

static struct err err;
#define SAMPLES 130
#define NOBODY 65534

static void make(const char *path)
{
    struct store *s;
    int64_t target, id;
    OK(store_open(&s, path, STORE_WATCH, NULL, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 7);
    OK(store_life_begin(s, &info, &id, &err));
    for (int64_t i = 0; i < SAMPLES; i++)
        OK(put_sweep_at(s, &id, 1, i, &err));
    OK(store_close(s, &err));
}

static void sql(const char *path, const char *text)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- folders that are read-only to us ---- */

struct places { char folder[600], path[700]; };

static void as_reader(const struct places *p, int64_t at_least, bool said)
{
    struct store *s;
    struct check c = {.id = 1};
    OK(store_open(&s, p->path, STORE_READ, NULL, &err));
    OK(store_each_point(s, 1, INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
    assert_in_range(c.n, at_least, SAMPLES);
    assert_true((store_damage(s) != NULL) == said);
    OK(store_close(s, &err));
    assert_int_equal(store_open(&s, p->path, STORE_WATCH, NULL, &err), LT_EPERM);
    assert_non_null(strstr(err.text, p->path));
}

/* Runs fn as somebody who owns the folder and the file but may not write into the folder. */
static void without_rights(const struct places *p, void (*fn)(const struct places *p))
{
    int status;
    if (geteuid() == 0)
        assert_int_equal(chown(harness_tmpdir(), NOBODY, NOBODY) | chown(p->folder, NOBODY, NOBODY) | chown(p->path, NOBODY, NOBODY), 0);
    assert_int_equal(chmod(p->folder, 0555), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
            _exit(77);
        fn(p);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(chmod(p->folder, 0755), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void places_make(struct places *p, const char *name)
{
    str_fmt(p->folder, sizeof p->folder, "%s/%s", harness_tmpdir(), name);
    assert_int_equal(fd_mkdir_p(p->folder, 0755), 0);
    str_fmt(p->path, sizeof p->path, "%s/a ?#%%.db", p->folder); /* a name that an URI would take apart */
}

static void read_whole(const struct places *p) { as_reader(p, SAMPLES, false); }

static void test_read_only_folder(void **state)
{
    struct places p;
    (void)state;
    places_make(&p, "ro");
    make(p.path);
    char watch[800];
    str_fmt(watch, sizeof watch, "%s-watch", p.path);
    assert_int_equal(unlink(watch), 0);
    without_rights(&p, read_whole);
}

static void read_part(const struct places *p) { as_reader(p, 0, true); }

/* A WAL that cannot be used there: what is in the file is read, and what is not is said. */
static void test_read_only_folder_with_a_wal(void **state)
{
    struct places p;
    struct store *s;
    int64_t target;
    char from[800], to[800];
    static char bytes[1 << 20];
    (void)state;
    places_make(&p, "rowal");
    make(p.path);
    OK(store_open(&s, p.path, STORE_WRITE, NULL, &err));
    OK(store_target(s, "more", "pid:2", &target, &err));
    str_fmt(from, sizeof from, "%s-wal", p.path);
    int fd = fd_open(AT_FDCWD, from, O_RDONLY, 0);
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    assert_true(n > 0);
    fd_close(fd);
    OK(store_close(s, &err));
    str_fmt(to, sizeof to, "%s-wal", p.path);
    assert_int_equal(fd_write_file(to, bytes, (size_t)n), 0); /* readable by its owner root alone, or by us: both must do */
    str_fmt(to, sizeof to, "%s-watch", p.path);
    unlink(to);
    without_rights(&p, read_part);
}

static void read_refused(const struct places *p)
{
    struct store *s;
    for (int mode = STORE_READ; mode <= STORE_WATCH; mode++)
        assert_int_equal(store_open(&s, p->path, (enum store_mode)mode, NULL, &err), LT_EPERM);
}

static void test_file_of_somebody_else(void **state)
{
    struct places p;
    (void)state;
    places_make(&p, "other");
    make(p.path);
    assert_int_equal(chmod(p.path, 0), 0);
    without_rights(&p, read_refused);
}

/* ---- versions and owners ---- */

static void test_newer_version_is_refused(void **state)
{
    struct store *s;
    char path[700];
    (void)state;
    str_copy(path, sizeof path, test_path("newer.db"));
    make(path);
    OK(store_open(&s, path, STORE_WRITE, NULL, &err));
    OK(db_begin(s, true, &err));
    OK(meta_put(s, META_VERSION, schema_version + 1, &err));
    OK(db_end(s, true, &err));
    OK(store_close(s, &err));
    for (int mode = STORE_READ; mode <= STORE_WATCH; mode++)
        assert_int_equal(store_open(&s, path, (enum store_mode)mode, NULL, &err), LT_EVERSION);
    assert_non_null(strstr(err.text, "newer version"));
    /* Told by SQLite's header field alone too; one bit of it is damage, and the checksummed row stands. */
    str_copy(path, sizeof path, test_path("header.db"));
    make(path);
    sql(path, "PRAGMA user_version = 99");
    assert_int_equal(store_open(&s, path, STORE_READ, NULL, &err), LT_EVERSION);
    sql(path, "PRAGMA user_version = 1048577");
    OK(store_open(&s, path, STORE_READ, NULL, &err));
    OK(store_close(s, &err));
}

static void test_foreign_databases(void **state)
{
    struct store *s;
    char path[700];
    (void)state;
    str_copy(path, sizeof path, test_path("foreign.db"));
    sql(path, "CREATE TABLE song(title); INSERT INTO song VALUES('x'); PRAGMA user_version = 3");
    for (int mode = STORE_READ; mode <= STORE_WATCH; mode++)
        assert_int_equal(store_open(&s, path, (enum store_mode)mode, NULL, &err), LT_EUSAGE);
    assert_non_null(strstr(err.text, "another program"));
}

static void test_changed_definitions_are_damage(void **state)
{
    struct store *s;
    struct check c = {.id = 1};
    char path[700];
    (void)state;
    str_copy(path, sizeof path, test_path("changed.db"));
    make(path);
    sql(path, "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'seq INTEGER', 'seq INTEGES') WHERE name = 'sweep'");
    assert_int_equal(store_open(&s, path, STORE_WATCH, NULL, &err), LT_ECORRUPT);
    OK(store_open(&s, path, STORE_READ, NULL, &err));
    assert_non_null(store_damage(s));
    OK(store_each_point(s, 1, INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
    assert_int_equal(c.n, SAMPLES);
    OK(store_close(s, &err));
}

/* The fingerprint covers all that the schema makes: a new object must be added to its list. */
static void test_every_object_is_in_the_fingerprint(void **state)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    char path[700];
    (void)state;
    str_copy(path, sizeof path, test_path("objects.db"));
    make(path);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master", -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        char quoted[100];
        str_fmt(quoted, sizeof quoted, "'%s'", (const char *)sqlite3_column_text(st, 0));
        assert_non_null(strstr(schema_objects, quoted));
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
}

static int no_life(void *ctx, const struct life_row *row) { return (void)ctx, (void)row, 0; }

/* The first to come makes the schema, the others find it, whatever the order. */
static void test_many_make_it_at_once(void **state)
{
    char path[700];
    int status, good = 0;
    (void)state;
    str_copy(path, sizeof path, test_path("many.db"));
    for (int k = 0; k < 8; k++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid)
            continue;
        struct store *s;
        int64_t target;
        struct err e;
        int rc = store_open(&s, path, STORE_WRITE, NULL, &e);
        rc = rc ? rc : store_target(s, "api", "pid:1", &target, &e);
        rc = rc ? rc : store_each_life(s, target, INT64_MIN, INT64_MAX, no_life, NULL, &e);
        rc = rc ? rc : store_close(s, &e);
        if (rc)
            fprintf(stderr, "%s\n", e.text);
        _exit(rc ? 1 : target == 1 ? 0 : 2);
    }
    for (int k = 0; k < 8; k++) {
        assert_true(wait(&status) > 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    assert_int_equal(good, 8);
}

HARNESS_MAIN(CASE(test_read_only_folder), CASE(test_read_only_folder_with_a_wal), CASE(test_file_of_somebody_else),
             CASE(test_newer_version_is_refused), CASE(test_foreign_databases), CASE(test_changed_definitions_are_damage),
             CASE(test_every_object_is_in_the_fingerprint), CASE(test_many_make_it_at_once))

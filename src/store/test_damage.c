/* Bit flips and cuts at many places of a store, with and without a WAL: never a crash, never a wrong value, what was not hit
 * is still read, and damage that cost something is said. */
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/random.h"
#include "store/test_kit.h"

static struct err err;
#define LIVES 4
#define SAMPLES 700
#define POINTS (LIVES * SAMPLES)
#define EVENTS 60
#define PAGE 4096
/* The most that may be lost with one page: its chunks, or the sweeps of it and after it up to the next key. */
#define PAGE_POINTS 1400

struct image { size_t n[2]; uint8_t *p[2]; }; /* the file, the WAL */
static const char *const suffix[] = {"", "-wal"};

static void image_read(const char *path, struct image *image)
{
    for (int i = 0; i < 2; i++) {
        char name[700];
        struct stat st = {0};
        str_fmt(name, sizeof name, "%s%s", path, suffix[i]);
        int fd = fd_open(AT_FDCWD, name, O_RDONLY, 0);
        image->n[i] = fd >= 0 && fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
        image->p[i] = mem_alloc(image->n[i]);
        assert_non_null(image->p[i]);
        if (fd >= 0)
            assert_int_equal(pread(fd, image->p[i], image->n[i], 0), image->n[i]);
        fd_close(fd);
    }
}

static void image_free(struct image *image)
{
    mem_free(image->p[0]);
    mem_free(image->p[1]);
}

/* Writes the image, cut to `file_n` bytes of the file. */
static void image_write(const struct image *image, const char *path, size_t file_n)
{
    char name[700];
    str_fmt(name, sizeof name, "%s-shm", path);
    unlink(name);
    for (int i = 0; i < 2; i++) {
        str_fmt(name, sizeof name, "%s%s", path, suffix[i]);
        unlink(name);
        size_t n = i ? image->n[1] : file_n;
        if (!n && i)
            continue;
        int fd = fd_open(AT_FDCWD, name, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0 && fd_write_all(fd, image->p[i], n) == 0);
        fd_close(fd);
    }
}

/* A store with something of everything; read as an image while it is open (with a WAL) or after it was closed. */
static void make(struct image *ret_closed, struct image *ret_wal)
{
    struct store *s;
    int64_t target, ids[LIVES];
    char text[64], path[700];
    str_copy(path, sizeof path, test_path("make.db"));
    OK(store_open(&s, path, STORE_WATCH, NULL, &err));
    OK(store_target(s, "api", "port:8000", &target, &err));
    for (int32_t k = 0; k < LIVES; k++) {
        struct life_info info = test_life(target, 100 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
    }
    for (int64_t i = 0; i < EVENTS; i++) {
        str_fmt(text, sizeof text, "event number %lld", (long long)i);
        OK(store_put_event(s, target, T0 + i * NS_PER_S, "note", text, &err));
    }
    for (int64_t i = 0; i < SAMPLES; i++) {
        if (i == SAMPLES / 2) { /* so that the first half is in the file, whatever the WAL holds */
            OK(store_close(s, &err));
            struct store_config config = {.interval_ns = STEP};
            OK(store_open(&s, path, STORE_WATCH, &config, &err));
            for (int32_t k = 0; k < LIVES; k++) {
                struct life_info info = test_life(target, 100 + k);
                OK(store_life_begin(s, &info, &ids[k], &err));
            }
        }
        OK(put_sweep_at(s, ids, LIVES, i, &err));
        OK(store_commit(s, &err));
    }
    image_read(path, ret_wal);
    OK(store_close(s, &err));
    image_read(path, ret_closed);
    assert_true(ret_wal->n[1] > 0 && ret_closed->n[1] == 0);
}

/* ---- what can be read ---- */

struct found { int64_t points, events, lives; bool said, verified_bad; };

static int see_event(void *ctx, const struct event_row *r)
{
    struct found *f = ctx;
    char text[64];
    str_fmt(text, sizeof text, "event number %lld", (long long)((r->ts_ns - T0) / NS_PER_S));
    assert_string_equal(r->text, text);
    f->events++;
    return 0;
}

static int see_life(void *ctx, const struct life_row *r)
{
    struct found *f = ctx;
    f->lives++;
    assert_in_range(r->id, 1, LIVES);
    assert_int_equal(r->info.key.pid, 99 + r->id);
    assert_true(r->samples <= SAMPLES);
    if (r->samples == SAMPLES)
        assert_int_equal(r->last[METRIC_RSS_ANON], truth(r->id, METRIC_RSS_ANON, SAMPLES - 1));
    return 0;
}

static void note_line(void *ctx, const char *line)
{
    (void)ctx;
    assert_true(strlen(line) > 0);
}

static bool read_all(const char *path, struct found *f)
{
    struct store *s;
    memset(f, 0, sizeof *f);
    int rc = store_open(&s, path, STORE_READ, NULL, &err);
    if (rc)
        return false;
    for (int64_t id = 1; id <= LIVES; id++) {
        struct check c = {.id = id, .holes = true};
        OK(store_each_point(s, id, INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
        f->points += c.n;
    }
    OK(store_each_event(s, 1, INT64_MIN, INT64_MAX, see_event, f, &err));
    OK(store_each_life(s, 1, INT64_MIN, INT64_MAX, see_life, f, &err));
    f->said = store_damage(s) != NULL;
    rc = store_verify(s, note_line, NULL, &err);
    assert_true(rc == 0 || rc == LT_ECORRUPT);
    f->verified_bad = rc != 0;
    OK(store_close(s, &err));
    return true;
}

static void expect_little_lost(const struct found *f, const char *what, size_t at)
{
    bool lost = f->points < POINTS || f->events < EVENTS || f->lives < LIVES;
    if (f->points < POINTS - PAGE_POINTS || f->events < EVENTS - 60 || f->lives < LIVES - 4 || (lost && !f->said && !f->verified_bad))
        fail_msg("%s %zu: %lld points, %lld events, %lld lives, %s, %s", what, at, (long long)f->points, (long long)f->events,
                 (long long)f->lives, f->said ? "said" : "not said", f->verified_bad ? "verified as bad" : "verified as sound");
}

/* Flips one bit at each of many places of one part of the image. */
static void flip_many(const struct image *image, int part, int rounds, uint64_t seed)
{
    struct random r = {seed};
    char path[700];
    struct found f;
    int refused = 0;
    str_copy(path, sizeof path, test_path("flip.db"));
    for (int round = 0; round < rounds; round++) {
        /* One in four in the first bytes of a page, where a bit decides about all of it. */
        size_t at = random_below(&r, image->n[part]);
        if (round % 4 == 0)
            at = at / PAGE * PAGE + random_below(&r, 110) % (image->n[part] - at / PAGE * PAGE);
        uint8_t was = image->p[part][at];
        image->p[part][at] ^= (uint8_t)(1 << random_below(&r, 8));
        image_write(image, path, image->n[0]);
        image->p[part][at] = was;
        if (!read_all(path, &f)) {
            refused++;
            assert_true(part == 0 && at < 200); /* only what says that this is a store at all, or of which version */
        } else if (part == 0) {
            expect_little_lost(&f, "bit flipped at", at);
        } else {
            /* A WAL ends where it is damaged: SQLite cannot tell that from a write that was cut off. What was in the file stays. */
            assert_true(f.points >= POINTS / 2 - PAGE_POINTS);
        }
    }
    assert_true(refused <= rounds / 20 + 2);
}

static void test_flipped_bits(void **state)
{
    struct image closed, wal;
    (void)state;
    make(&closed, &wal);
    flip_many(&closed, 0, 400, 11);
    flip_many(&wal, 0, 100, 12);
    flip_many(&wal, 1, 100, 13);
    image_free(&closed);
    image_free(&wal);
}

/* Chunks of the sound store that lie wholly before the cut, by SQLite's own account; 0 where it cannot tell. */
static int64_t chunks_before(const char *sound, size_t cut)
{
    sqlite3 *db;
    sqlite3_stmt *st = NULL;
    int64_t n = 0;
    static const char sql[] = "SELECT sum(CASE WHEN pagetype = 'leaf' AND pageno * 4096 <= ?1 THEN ncell ELSE 0 END)"
                              " - sum(pagetype = 'overflow' AND pageno * 4096 > ?1) FROM dbstat WHERE name = 'chunk'";
    assert_int_equal(sqlite3_open_v2(sound, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(st, 1, (int64_t)cut);
        if (sqlite3_step(st) == SQLITE_ROW)
            n = sqlite3_column_int64(st, 0);
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
    return MAX(n, 0);
}

static void test_cut_files(void **state)
{
    struct image closed, wal;
    struct random r = {14};
    struct found f;
    char path[700];
    int64_t most = 0;
    (void)state;
    make(&closed, &wal);
    str_copy(path, sizeof path, test_path("cut.db"));
    for (int round = 0; round < 80; round++) {
        size_t n = round < 8 ? (size_t)round * 40 : random_below(&r, closed.n[0]);
        image_write(&closed, path, n);
        if (!read_all(path, &f)) {
            assert_true(n < 4 * PAGE);
            continue;
        }
        assert_true(f.said || f.verified_bad);
        int64_t whole = chunks_before(test_path("make.db"), n);
        most = MAX(most, whole);
        str_copy(path, sizeof path, test_path("cut.db"));
        if (f.points < whole * 120)
            fail_msg("cut at %zu of %zu: %lld points of %lld whole chunks", n, closed.n[0], (long long)f.points, (long long)whole);
    }
    assert_true(most > 0);
    image_free(&closed);
    image_free(&wal);
}

/* Rows that are gone without a trace are missed: any raw chunk of a life (K6, K7), any sweep but the last (S2). */
static void test_missing_rows_are_noticed(void **state)
{
    static const struct { const char *sql; int64_t lost; } all[] = {
        {"DELETE FROM chunk WHERE id = (SELECT id FROM chunk WHERE life = 2 ORDER BY ts LIMIT 1)", 120},
        {"DELETE FROM chunk WHERE id = (SELECT id FROM chunk WHERE life = 2 ORDER BY ts LIMIT 1 OFFSET 2)", 120},
        {"DELETE FROM chunk WHERE id = (SELECT id FROM chunk WHERE life = 2 ORDER BY ts DESC LIMIT 1)", 120},
        {"DELETE FROM sweep WHERE seq = (SELECT max(seq) - 15 FROM sweep)", 0},
        {"DELETE FROM sweep WHERE seq = (SELECT min(seq) FROM sweep)", 0},
    };
    struct image closed, wal;
    struct found f;
    char path[700];
    (void)state;
    make(&closed, &wal);
    str_copy(path, sizeof path, test_path("gone.db"));
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        sqlite3 *db;
        image_write(&closed, path, closed.n[0]);
        assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, all[i].sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_changes(db), 1);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        assert_true(read_all(path, &f));
        assert_true(f.said && f.verified_bad);
        assert_true(all[i].lost ? f.points == POINTS - all[i].lost : f.points < POINTS && f.points >= POINTS - 31 * LIVES);
    }
    image_free(&closed);
    image_free(&wal);
}

/* The same file, read by a writer: it is refused with a line, and not touched. */
static void test_writers_refuse_damage(void **state)
{
    struct image closed, wal, after;
    struct store *s;
    char path[700];
    (void)state;
    make(&closed, &wal);
    str_copy(path, sizeof path, test_path("bad.db"));
    memset(closed.p[0] + 100, 0xff, 8); /* the header of the first page */
    image_write(&closed, path, closed.n[0]);
    assert_int_equal(store_open(&s, path, STORE_WATCH, NULL, &err), LT_ECORRUPT);
    assert_non_null(strstr(err.text, "store verify"));
    image_read(path, &after);
    assert_int_equal(after.n[0], closed.n[0]);
    assert_memory_equal(after.p[0], closed.p[0], closed.n[0]);
    struct found f;
    assert_true(read_all(path, &f));
    assert_int_equal(f.points, POINTS);
    assert_int_equal(f.events, EVENTS);
    assert_true(f.said);
    image_free(&closed);
    image_free(&wal);
    image_free(&after);
}

HARNESS_MAIN(CASE(test_flipped_bits), CASE(test_cut_files), CASE(test_missing_rows_are_noticed),
             CASE(test_writers_refuse_damage))

/* The schema and how it came to be: one step a version. A new store runs all of them, an older one those it lacks. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define APPLICATION_ID 0x4c6f7774 /* "Lowt" */

static const char step_1[] =
    "CREATE TABLE meta(id INTEGER PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT NOT NULL, crc INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX word_text ON word(text);"
    "CREATE TABLE target(id INTEGER PRIMARY KEY, name TEXT NOT NULL, selector TEXT NOT NULL, crc INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX target_name ON target(name);"
    "CREATE TABLE life(id INTEGER PRIMARY KEY, target INTEGER NOT NULL, boot INTEGER NOT NULL, pid INTEGER NOT NULL,"
    " start INTEGER NOT NULL, cause INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL);"
    "CREATE INDEX life_key ON life(target, pid, start);"
    "CREATE TABLE sweep(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, life INTEGER NOT NULL, tier INTEGER NOT NULL, ts INTEGER NOT NULL,"
    " data BLOB NOT NULL, crc INTEGER NOT NULL);"
    "CREATE INDEX chunk_life ON chunk(life, tier, ts);"
    "CREATE TABLE event(id INTEGER PRIMARY KEY, target INTEGER NOT NULL, ts INTEGER NOT NULL, kind TEXT NOT NULL,"
    " text TEXT NOT NULL, crc INTEGER NOT NULL);"
    "CREATE INDEX event_time ON event(target, ts);"
    "CREATE TABLE gap(id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, until INTEGER NOT NULL, why TEXT NOT NULL,"
    " crc INTEGER NOT NULL);"
    "CREATE TABLE rseries(id INTEGER PRIMARY KEY, target INTEGER NOT NULL, endpoint INTEGER NOT NULL,"
    " version INTEGER NOT NULL, outcome INTEGER NOT NULL, stream INTEGER NOT NULL, pid INTEGER NOT NULL,"
    " import INTEGER NOT NULL, crc INTEGER NOT NULL);"
    "CREATE INDEX rseries_key ON rseries(target, endpoint, pid);"
    "CREATE TABLE request(id INTEGER PRIMARY KEY, n INTEGER NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE hist(id INTEGER PRIMARY KEY, life INTEGER NOT NULL, ts INTEGER NOT NULL, what INTEGER NOT NULL,"
    " data BLOB NOT NULL, crc INTEGER NOT NULL);"
    "CREATE INDEX hist_life ON hist(life, ts);"
    "CREATE TABLE hkey(id INTEGER PRIMARY KEY, text TEXT NOT NULL, crc INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX hkey_text ON hkey(text);";

/* steps[i] makes version i + 1 of version i. Append; never change one that was released. */
static const char *const steps[] = {step_1};

const int schema_version = (int)ARRAY_SIZE(steps);

/* All that the steps make: a flipped bit in their definitions would change what rows mean. */
#define OBJECTS "'chunk','chunk_life','event','event_time','gap','hist','hist_life','hkey','hkey_text','life','life_key','meta'," \
                "'request','rseries','rseries_key','sweep','target','target_name','word','word_text'"

const char schema_objects[] = OBJECTS;

static int run(struct store *s, const char *text, struct err *err)
{
    int rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : db_error(s, rc, err);
}

static int pragma_number(struct store *s, const char *text, int64_t *ret, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, text, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    int out = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : db_error(s, rc, err);
    *ret = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_finalize(st);
    return out;
}

/* Settings of every connection. */
int schema_set_up(struct store *s, struct err *err)
{
    sqlite3_busy_timeout(s->db, s->mode == STORE_WATCH ? BUSY_MS : 5 * BUSY_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_extended_result_codes(s->db, 1);
    /* No mmap: a file cut short under a mapping is a SIGBUS. Checking cells costs little and finds damage early. */
    int rc = run(s, "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;"
                    "PRAGMA secure_delete = OFF; PRAGMA cache_size = -1024; PRAGMA wal_autocheckpoint = 256;"
                    "PRAGMA journal_size_limit = 1048576; PRAGMA synchronous = NORMAL", err);
    /* SQLite's cache grows with the file until it is full: a large one fills for days, and the watcher's own memory looks like
     * a leak. 20 pages are what SQLite allocates at once, when it is opened; what does not fit them goes to the WAL early. */
    return rc || s->mode != STORE_WATCH ? rc : run(s, "PRAGMA cache_size = 20", err);
}

int meta_get(struct store *s, enum meta_id id, int64_t fallback, int64_t *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_META_GET, TABLE_META, err, VI(id));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc >= 0)
        *ret = rc ? rows_int(&r, 1) : fallback;
    return rc < 0 ? rc : 0;
}

int meta_put(struct store *s, enum meta_id id, int64_t value, struct err *err)
{
    return db_put(s, STMT_META_PUT, TABLE_META, err, VI(id), VI(value));
}

/* The version the store says it has: the checksummed row, else SQLite's header field. 0: an empty database. Where they differ
 * by a single bit the header was damaged; by more, the higher one counts: whoever wrote it knows what we do not. */
static int read_version(struct store *s, int64_t *ret, struct err *err)
{
    int64_t header, row;
    int rc = pragma_number(s, "PRAGMA user_version", &header, err);
    *ret = header;
    if (rc || !header)
        return rc;
    rc = meta_get(s, META_VERSION, header, &row, err);
    if (!rc)
        *ret = __builtin_popcountll((uint64_t)(row ^ header)) <= 1 ? row : MAX(row, header);
    return rc;
}

/* CRC of all definitions. */
static int fingerprint(struct store *s, int64_t *ret, struct err *err)
{
    sqlite3_stmt *st = NULL;
    uint32_t crc = 0;
    int rc = sqlite3_prepare_v2(s->db, "SELECT name || sql FROM sqlite_master WHERE name IN (" OBJECTS ") ORDER BY name", -1, &st, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW)
            crc = crc32c(crc, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
    }
    int out = rc == SQLITE_DONE ? 0 : db_error(s, rc, err);
    sqlite3_finalize(st);
    *ret = crc;
    return out;
}

/* Invariant M2. */
static int check_fingerprint(struct store *s, struct err *err)
{
    int64_t is, was;
    int rc = fingerprint(s, &is, err);
    if (!rc)
        rc = meta_get(s, META_SCHEMA, is, &was, err);
    if (!rc && is != was)
        rc = err_set(err, LT_ECORRUPT, "store %s: the definitions of its tables are damaged; see 'lowtide store verify'", s->path);
    return rc;
}

int schema_migrate(struct store *s, int64_t from, struct err *err)
{
    char text[64];
    int rc = 0;
    for (int64_t v = from; v < schema_version && !rc; v++)
        rc = run(s, steps[v], err);
    str_fmt(text, sizeof text, "PRAGMA user_version = %d", schema_version);
    if (!rc)
        rc = run(s, text, err);
    str_fmt(text, sizeof text, "PRAGMA application_id = %d", APPLICATION_ID);
    if (!rc)
        rc = run(s, text, err);
    int64_t crc;
    if (!rc)
        rc = meta_put(s, META_VERSION, schema_version, err);
    if (!rc)
        rc = fingerprint(s, &crc, err);
    return rc ? rc : meta_put(s, META_SCHEMA, crc, err);
}

/* Makes or migrates the schema, in one transaction: whoever comes second finds it done. */
static int make(struct store *s, struct err *err)
{
    int64_t version;
    int rc = db_begin(s, true, err);
    if (rc)
        return rc;
    rc = read_version(s, &version, err);
    if (!rc && version < schema_version)
        rc = schema_migrate(s, version, err);
    int rc2 = db_end(s, !rc, err);
    return rc ? rc : rc2;
}

/* A database of another program is left alone. */
static int check_ours(struct store *s, struct err *err)
{
    int64_t app, version, objects, named;
    int rc = pragma_number(s, "PRAGMA application_id", &app, err);
    if (rc || app == APPLICATION_ID)
        return rc;
    rc = pragma_number(s, "PRAGMA user_version", &version, err);
    if (!rc)
        rc = pragma_number(s, "SELECT count(*) FROM sqlite_master", &objects, err);
    if (!rc)
        rc = pragma_number(s, "SELECT count(*) FROM sqlite_master WHERE name IN ('life_key', 'chunk_life', 'rseries')", &named, err);
    if (rc || (!app && !version && !objects) || named == 3) /* a flipped bit in the id alone does not disown a store */
        return rc;
    return err_set(err, LT_EUSAGE, "store %s: it is a database of another program; choose another --db", s->path);
}

int schema_open(struct store *s, struct err *err)
{
    int64_t version;
    int rc = schema_set_up(s, err);
    if (!rc)
        rc = check_ours(s, err);
    if (!rc)
        rc = read_version(s, &version, err);
    if (rc)
        return rc;
    if (version > schema_version || version < 0)
        return err_set(err, LT_EVERSION, "store %s: written by a newer version (schema %lld, this build knows %d); use that version",
                       s->path, (long long)version, schema_version);
    if (version == schema_version)
        return check_fingerprint(s, err);
    if (s->mode == STORE_READ)
        return version ? err_set(err, LT_EVERSION, "store %s: written by an older version (schema %lld); run a verb that writes once",
                                 s->path, (long long)version)
                       : err_set(err, LT_ENOENT, "store %s: it is empty; start with 'lowtide watch'", s->path);
    if (!version)
        rc = run(s, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL", err);
    return rc ? rc : make(s, err);
}

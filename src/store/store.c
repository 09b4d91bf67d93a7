/* Opening, closing, and what is wrong with a store. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "store/parts.h"

static const char sqlite_magic[16] = "SQLite format 3";
static const uint8_t our_id[4] = {0x4c, 0x6f, 0x77, 0x74};

int store_default_path(bool create, char *out, size_t size, struct err *err)
{
    char folder[3800];
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (geteuid() == 0)
        str_copy(folder, sizeof folder, "/var/lib/lowtide");
    else if (state && state[0] == '/')
        str_fmt(folder, sizeof folder, "%s/lowtide", state);
    else if (home && home[0] == '/')
        str_fmt(folder, sizeof folder, "%s/.local/state/lowtide", home);
    else
        return err_set(err, LT_EUSAGE, "store: neither XDG_STATE_HOME nor HOME is set; give --db PATH");
    if (create) {
        int rc = fd_mkdir_p(folder, 0700);
        if (rc < 0)
            return err_set(err, err_errno(NULL, LT_EIO, -rc, "folder"), "store: cannot make the folder %s: %s; give --db PATH", folder,
                           strerror(-rc));
    }
    if (str_fmt(out, size, "%s/lowtide.db", folder) >= size)
        return err_set(err, LT_EUSAGE, "store: the path of %s is too long; give --db PATH", folder);
    return 0;
}

int file_error(const struct store *s, struct err *err, int errnum, const char *what)
{
    int code = err_errno(NULL, LT_EIO, errnum, "%s", what);
    const char *advice = code == LT_EFULL ? "make room on the disk" : code == LT_ENOMEM ? "free some memory"
                         : code == LT_EPERM ? "run as the user who owns it, or choose another --db" : "choose another --db";
    return err_set(err, code, "store %s: %s: %s; %s", s->path, what, strerror(errnum), advice);
}

/* ---- damage ---- */

void store_lost(struct store *s, const char *fmt, ...)
{
    char what[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    s->lost_rows++;
    str_fmt(s->damage, sizeof s->damage, "store %s is damaged: %llu %s not be read, the last: %s", s->path,
            (unsigned long long)s->lost_rows, s->lost_rows == 1 ? "row could" : "rows could", what);
    if (s->lost_fn)
        s->lost_fn(s->lost_ctx, what);
}

const char *store_damage(const struct store *s) { return s->damage[0] ? s->damage : NULL; }

/* ---- the file ---- */

/* What is at the path before SQLite touches it: LT_ENOENT, LT_EUSAGE for what was never a store, *ret_new when empty. */
static int look(struct store *s, bool *ret_new, struct err *err)
{
    uint8_t head[100] = {0};
    struct stat st;
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, s->path, O_RDONLY | O_NONBLOCK, 0);
    *ret_new = true;
    if (fd == -ENOENT)
        return s->mode == STORE_READ ? err_set(err, LT_ENOENT, "store %s: there is none; start with 'lowtide watch'", s->path) : 0;
    if (fd < 0)
        return file_error(s, err, -fd, "cannot open it");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, LT_EUSAGE, "store %s: it is not a file; choose another --db", s->path);
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return file_error(s, err, errno, "cannot read it");
    *ret_new = n == 0;
    if (n == 0 && s->mode == STORE_READ)
        return err_set(err, LT_ENOENT, "store %s: it is empty; start with 'lowtide watch'", s->path);
    bool magic = n >= 16 && !memcmp(head, sqlite_magic, 16);
    bool ours = n == 100 && !memcmp(head + 68, our_id, sizeof our_id);
    if (n && !magic && !ours)
        return err_set(err, LT_EUSAGE, "store %s: it is not a Lowtide store; choose another --db", s->path);
    return 0;
}

static int create(struct store *s, struct err *err)
{
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, s->path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 && fd != -EEXIST)
        return file_error(s, err, -fd, "cannot make it");
    return 0;
}

/* "file:" with what a URI would take for something else escaped. */
static int immutable_uri(const char *path, char *out, size_t size)
{
    size_t at = str_copy(out, size, "file:");
    for (; *path && at + 24 < size; path++)
        at += strchr("%?#", *path) ? str_fmt(out + at, size - at, "%%%02x", *path) : str_fmt(out + at, size - at, "%c", *path);
    str_copy(out + at, size - at, "?immutable=1");
    return *path ? LT_ELIMIT : 0;
}

static int connect_db(struct store *s, struct err *err)
{
    char uri[8300];
    int flags = s->mode == STORE_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    str_fmt(uri, sizeof uri, "%s%s", s->path[0] == '/' ? "" : "./", s->path); /* or "file:x" would be read as a URI */
    if (s->immutable && immutable_uri(s->path, uri, sizeof uri))
        return err_set(err, LT_EUSAGE, "store %s: the path is too long", s->path);
    int rc = sqlite3_open_v2(uri, &s->db, flags | (s->immutable ? SQLITE_OPEN_URI : 0), NULL);
    return rc == SQLITE_OK ? schema_open(s, err) : db_error(s, rc, err);
}

static void disconnect(struct store *s)
{
    db_finalize(s);
    sqlite3_close_v2(s->db);
    s->db = NULL;
}

/* In a folder nobody may write to, SQLite cannot make the files that a WAL needs: then the file is read as it is. */
static int connect_read_only_folder(struct store *s, struct err *err)
{
    char wal[4200];
    struct stat st;
    disconnect(s);
    s->immutable = true;
    int rc = connect_db(s, err);
    str_fmt(wal, sizeof wal, "%s-wal", s->path);
    if (!rc && stat(wal, &st) == 0 && st.st_size > 0)
        str_fmt(s->damage, sizeof s->damage, "store %s: its folder is read-only, so the newest samples (%lld bytes of log) were not read",
                s->path, (long long)st.st_size);
    return rc;
}

static int open_all(struct store *s, struct err *err)
{
    bool is_new;
    int rc = look(s, &is_new, err);
    if (!rc && s->mode == STORE_WATCH)
        rc = lock_take(s, err);
    if (!rc && is_new)
        rc = create(s, err);
    if (rc)
        return rc;
    rc = connect_db(s, err);
    if ((rc == LT_EPERM || rc == LT_EIO) && s->mode == STORE_READ)
        rc = connect_read_only_folder(s, err);
    if (rc == LT_ECORRUPT && s->mode == STORE_READ)
        rc = salvage(s, err);
    if (!rc)
        rc = budget_agree(s, err);
    if (!rc && s->mode == STORE_WATCH)
        rc = watcher_open(s, err);
    return rc;
}

static void store_free(struct store *s)
{
    watcher_close(s);
    rcache_drop(s);
    disconnect(s);
    lock_drop(s);
    map_release(&s->dirty);
    vec_release(&s->olds);
    buf_release(&s->row);
    mem_free(s->scratch);
    mem_free(s->chunk[0]);
    mem_free(s->chunk[1]);
    mem_free(s->view);
    mem_free(s->path);
    mem_free(s);
}

int store_open(struct store **ret, const char *path, enum store_mode mode, const struct store_config *config, struct err *err)
{
    if (strlen(path) > 4000)
        return err_set(err, LT_EUSAGE, "store: the path is too long; give a shorter --db");
    struct store *s = mem_zalloc(1, sizeof *s);
    if (!s)
        return err_set(err, LT_ENOMEM, "store %s: out of memory", path);
    s->mode = mode;
    s->lock_fd = -1;
    if (config)
        s->config = *config;
    map_init(&s->dirty, LIVES_MAX);
    vec_init(&s->olds, sizeof(struct old_chunk), 1 << 20);
    buf_init(&s->row, LIFE_BYTES_MAX);
    s->path = mem_strdup(path);
    int rc = s->path ? open_all(s, err) : err_set(err, LT_ENOMEM, "store %s: out of memory", path);
    if (rc) {
        store_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

int store_close(struct store *s, struct err *err)
{
    int rc = 0;
    if (!s)
        return 0;
    if (s->user_txn)
        rc = store_end(s, true, err);
    if (s->mode == STORE_WATCH && store_queued_bytes(s))
        rc = store_commit(s, err);
    if (s->mode == STORE_WRITE && s->db)
        budget_keep(s, 0, NULL); /* a large import may need it; what was written is written either way */
    store_free(s);
    return rc;
}

/* Reading what SQLite cannot: when its own pages are damaged, every page of the file (and of the WAL before it) is looked at
 * for itself. Table leaves give up their rows whatever stands above them; a row is taken when its checksum is that of one
 * of our tables, which also says which. What is found goes into a temporary database, and the store reads on from there.
 *
 * SQLite file format: https://www.sqlite.org/fileformat2.html (b-tree pages, records, pointer map, WAL).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "store/parts.h"

#define PAGE_MAX 65536
#define PAGES_MAX (1 << 26)
#define ROW_MAX (16 << 20)
#define COLUMNS_MAX 16
enum { PAGE_TABLE_LEAF = 13, PTRMAP_FREE = 2, PTRMAP_BTREE = 5, PTRMAP_ROOT = 1 };

struct salvage {
    struct store *s;
    int fd, wal;
    uint32_t page_size, npages;
    struct map wal_pages;        /* page -> offset of its newest committed image in the WAL */
    sqlite3 *out;
    sqlite3_stmt *insert[TABLE_N];
    struct buf row;
    uint64_t taken, lost;
    uint8_t page[PAGE_MAX], other[PAGE_MAX]; /* the page being read; an overflow or pointer-map page */
    uint32_t other_no;
};

static uint32_t be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static uint32_t be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }

/* SQLite's varint: big-endian, the ninth byte whole. Bytes taken, 0 when cut short. */
static size_t get_varint(const uint8_t *p, size_t len, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < len && i < 9; i++) {
        if (i == 8) {
            *ret = v << 8 | p[i];
            return 9;
        }
        v = v << 7 | (p[i] & 0x7f);
        if (p[i] < 0x80) {
            *ret = v;
            return i + 1;
        }
    }
    return 0;
}

/* ---- pages ---- */

/* The WAL's checksum runs over all frames: a frame counts when the chain holds up to it and a commit follows. */
static void wal_sum(const uint8_t *p, size_t len, bool big, uint32_t sum[2])
{
    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint32_t a, b;
        memcpy(&a, p + i, 4);
        memcpy(&b, p + i + 4, 4);
        if (big) {
            a = be32(p + i);
            b = be32(p + i + 4);
        }
        sum[0] += a + sum[1];
        sum[1] += b + sum[0];
    }
}

static int wal_frames(struct salvage *v, const uint8_t head[32], bool big, uint32_t sum[2])
{
    struct map pending;
    uint8_t frame[24];
    int rc = 0;
    map_init(&pending, PAGES_MAX);
    for (int64_t at = 32; !rc; at += 24 + v->page_size) {
        if (pread(v->wal, frame, sizeof frame, at) != sizeof frame || memcmp(frame + 8, head + 16, 8) ||
            pread(v->wal, v->other, v->page_size, at + 24) != (ssize_t)v->page_size)
            break;
        wal_sum(frame, 8, big, sum);
        wal_sum(v->other, v->page_size, big, sum);
        if (sum[0] != be32(frame + 16) || sum[1] != be32(frame + 20))
            break;
        rc = map_put(&pending, be32(frame), (uint64_t)at + 24);
        if (!be32(frame + 4))
            continue;
        size_t pos = 0;
        for (struct map_entry *e; !rc && (e = map_next(&pending, &pos));)
            rc = map_put(&v->wal_pages, e->key, e->value);
        map_clear(&pending);
        v->npages = be32(frame + 4);
    }
    map_release(&pending);
    return rc;
}

static int read_wal(struct salvage *v)
{
    uint8_t head[32];
    uint32_t sum[2] = {0, 0};
    if (v->wal < 0 || pread(v->wal, head, sizeof head, 0) != sizeof head || (be32(head) & ~1u) != 0x377f0682 ||
        be32(head + 8) != v->page_size)
        return 0;
    bool big = be32(head) & 1;
    wal_sum(head, 24, big, sum);
    return sum[0] == be32(head + 24) && sum[1] == be32(head + 28) ? wal_frames(v, head, big, sum) : 0;
}

static bool read_page(struct salvage *v, uint32_t no, uint8_t *out)
{
    uint64_t at;
    if (!no)
        return false;
    if (map_get(&v->wal_pages, no, &at))
        return pread(v->wal, out, v->page_size, (off_t)at) == (ssize_t)v->page_size;
    memset(out, 0, v->page_size); /* a file cut inside a page: what is there is looked at */
    return pread(v->fd, out, v->page_size, (off_t)(no - 1) * v->page_size) > 0;
}

/* What the pointer map says a page is: free pages hold rows that were deleted. */
static int page_kind(struct salvage *v, uint32_t no)
{
    uint32_t per = v->page_size / 5, map = (no - 2) / (per + 1) * (per + 1) + 2;
    if (no < 2 || no == map)
        return no < 2 ? PTRMAP_ROOT : 0;
    if (v->other_no != map) {
        if (!read_page(v, map, v->other))
            return -1;
        v->other_no = map;
    }
    return v->other[(no - map - 1) * 5];
}

/* ---- rows ---- */

static int64_t get_int(const uint8_t *p, size_t len)
{
    int64_t v = (int8_t)p[0]; /* the sign is in the first byte */ // NOLINT(bugprone-signed-char-misuse)
    for (size_t i = 1; i < len; i++)
        v = (int64_t)((uint64_t)v << 8 | p[i]);
    return v;
}

/* One value of a record; false when it is of a type we never write. */
static bool get_val(uint64_t type, const uint8_t *p, size_t len, size_t *pos, struct val *ret)
{
    static const uint8_t int_len[] = {0, 1, 2, 3, 4, 6, 8};
    size_t n = type >= 12 ? (type - 12) / 2 : type >= 1 && type <= 6 ? int_len[type] : 0;
    if (type == 0 || type == 7 || type == 10 || type == 11 || n > len - *pos)
        return false;
    if (type >= 12)
        *ret = (struct val){.type = type & 1 ? VAL_TEXT : VAL_BLOB, .p = p + *pos, .len = n};
    else
        *ret = VI(type >= 8 ? (int64_t)type - 8 : get_int(p + *pos, n));
    *pos += n;
    return true;
}

/* Takes a record apart: number of columns, 0 when it is none of ours. The row id stands for the first, stored as NULL. */
static size_t get_record(const uint8_t *p, size_t len, int64_t rowid, struct val ret[COLUMNS_MAX])
{
    uint64_t head, type;
    size_t at = get_varint(p, len, &head), n = 0;
    if (!at || head > len)
        return 0;
    size_t pos = head;
    while (at < head && n < COLUMNS_MAX) {
        size_t used = get_varint(p + at, head - at, &type);
        if (!used)
            return 0;
        at += used;
        if (n == 0 && type == 0)
            ret[n++] = VI(rowid);
        else if (!get_val(type, p, len, &pos, &ret[n++]))
            return 0;
    }
    return at == head ? n : 0;
}

static enum table_id table_of(const struct val *v, size_t n)
{
    for (enum table_id t = TABLE_NONE + 1; t < TABLE_N && n > 1; t++)
        if (n == (size_t)tables[t].columns && v[n - 1].type == VAL_INT && v[n - 1].i == (int32_t)row_crc(t, v, n - 1))
            return t;
    return TABLE_NONE;
}

static int insert_row(struct salvage *v, enum table_id t, const struct val *val, size_t n)
{
    static const char marks[] = "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?";
    char text[128];
    int rc = SQLITE_OK;
    if (!v->insert[t]) {
        str_fmt(text, sizeof text, "INSERT OR REPLACE INTO %s VALUES(%.*s)", tables[t].name, (int)(2 * n - 1), marks);
        rc = sqlite3_prepare_v2(v->out, text, -1, &v->insert[t], NULL);
    }
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        int at = (int)i + 1;
        if (val[i].type == VAL_INT)
            rc = sqlite3_bind_int64(v->insert[t], at, val[i].i);
        else if (val[i].type == VAL_TEXT)
            rc = sqlite3_bind_text64(v->insert[t], at, val[i].p, val[i].len, SQLITE_STATIC, SQLITE_UTF8);
        else
            rc = sqlite3_bind_blob64(v->insert[t], at, val[i].p, val[i].len, SQLITE_STATIC);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(v->insert[t]);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        sqlite3_reset(v->insert[t]);
    }
    v->taken += rc == SQLITE_OK;
    return rc == SQLITE_OK || rc == SQLITE_CONSTRAINT ? 0 : rc == SQLITE_NOMEM ? LT_ENOMEM : LT_EIO;
}

/* Collects a payload that is longer than its page from the overflow pages; false when the chain is broken. */
static bool get_overflow(struct salvage *v, uint32_t no, size_t total)
{
    for (uint32_t steps = 0; v->row.len < total && steps < v->npages; steps++) {
        size_t take = MIN(total - v->row.len, (size_t)v->page_size - 4);
        v->other_no = 0;
        if (no > v->npages || !read_page(v, no, v->other) || buf_append(&v->row, v->other + 4, take))
            return false;
        no = be32(v->other);
    }
    return v->row.len == total;
}

/* The payload of the cell at `at` of the page: NULL when it cannot be one. */
static const uint8_t *get_payload(struct salvage *v, size_t at, size_t *ret_len, int64_t *ret_rowid)
{
    uint64_t len, rowid;
    size_t usable = v->page_size;
    size_t used = get_varint(v->page + at, usable - at, &len);
    if (!used || len > ROW_MAX)
        return NULL;
    at += used;
    used = get_varint(v->page + at, usable - at, &rowid);
    if (!used)
        return NULL;
    at += used;
    *ret_len = len;
    *ret_rowid = (int64_t)rowid;
    if (len <= usable - 35)
        return len <= usable - at ? v->page + at : NULL;
    size_t least = (usable - 12) * 32 / 255 - 23, local = least + (len - least) % (usable - 4);
    if (local > usable - 35)
        local = least;
    buf_clear(&v->row);
    if (local + 4 > usable - at || buf_append(&v->row, v->page + at, local) || !get_overflow(v, be32(v->page + at + local), len))
        return NULL;
    return (const uint8_t *)v->row.p;
}

static bool is_schema(const struct val *v, size_t n) { return n == 5 && v[0].type == VAL_TEXT; }

static int take_cell(struct salvage *v, size_t at)
{
    struct val val[COLUMNS_MAX];
    size_t len = 0, n = 0;
    int64_t rowid = 0;
    const uint8_t *p = get_payload(v, at, &len, &rowid);
    if (p)
        n = get_record(p, len, rowid, val);
    enum table_id t = table_of(val, n);
    if (t != TABLE_NONE)
        return insert_row(v, t, val, n);
    v->lost += !is_schema(val, n);
    return 0;
}

static int take_page(struct salvage *v, uint32_t no)
{
    int kind = page_kind(v, no);
    if (kind == PTRMAP_FREE || !read_page(v, no, v->page))
        return 0;
    const uint8_t *h = v->page + (no == 1 ? 100 : 0);
    size_t cells = be16(h + 3), first = (no == 1 ? 108 : 8);
    if (h[0] != PAGE_TABLE_LEAF || kind == 3 || kind == 4 || first + 2 * cells > v->page_size)
        return 0;
    int rc = 0;
    for (size_t i = 0; i < cells && !rc; i++) {
        size_t at = be16(v->page + first + 2 * i);
        if (at >= first + 2 * cells && at + 4 <= v->page_size)
            rc = take_cell(v, at);
        else
            v->lost++;
    }
    return rc;
}

/* ---- the whole ---- */

static int take_all(struct salvage *v)
{
    uint8_t head[100] = {0};
    struct stat st;
    if (fstat(v->fd, &st) < 0 || pread(v->fd, head, sizeof head, 0) < 0)
        return LT_EIO;
    v->page_size = be16(head + 16) == 1 ? 65536 : be16(head + 16);
    if (v->page_size < 512 || (v->page_size & (v->page_size - 1)))
        v->page_size = 4096; /* what we make; the field is damaged */
    v->npages = (uint32_t)MIN((st.st_size + v->page_size - 1) / v->page_size, (off_t)PAGES_MAX);
    uint32_t file_pages = v->npages;
    int rc = read_wal(v);
    v->npages = MAX(v->npages, file_pages);
    v->other_no = 0;
    for (uint32_t no = 1; no <= v->npages && !rc; no++)
        rc = take_page(v, no);
    return rc;
}

/* The store's connection becomes the copy. */
static void swap_in(struct salvage *v)
{
    struct store *s = v->s;
    db_finalize(s);
    sqlite3_close_v2(s->db);
    s->db = TAKE_PTR(v->out);
    s->salvaged = true;
    s->depth = 0;
    s->log_first = s->log_last = 0;
    s->lost_rows += v->lost;
    if (v->lost)
        str_fmt(s->damage, sizeof s->damage, "store %s is damaged: %llu rows were read, %llu could not be; see 'lowtide store verify'",
                s->path, (unsigned long long)v->taken, (unsigned long long)v->lost);
    else
        str_fmt(s->damage, sizeof s->damage, "store %s is damaged: %llu rows were read; see 'lowtide store verify'", s->path,
                (unsigned long long)v->taken);
}

static int make_copy(struct salvage *v, struct err *err)
{
    struct store *s = v->s, copy = {.path = s->path, .mode = STORE_WRITE};
    int rc = sqlite3_open_v2("", &copy.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    v->out = copy.db; /* also when it failed: closed by the caller */
    rc = rc == SQLITE_OK ? schema_set_up(&copy, err) : db_error(&copy, rc, err);
    if (!rc)
        rc = db_begin(&copy, true, err);
    if (rc)
        return rc;
    rc = schema_migrate(&copy, 0, err);
    if (!rc) {
        rc = take_all(v);
        if (rc)
            err_set(err, rc, "store %s: salvaging it: %s", s->path, err_sentence(rc));
    }
    for (int t = 0; t < TABLE_N; t++)
        sqlite3_finalize(v->insert[t]);
    int rc2 = db_end(&copy, !rc, rc ? NULL : err);
    db_finalize(&copy);
    return rc ? rc : rc2;
}

int salvage(struct store *s, struct err *err)
{
    char wal[4200];
    _cleanup_mem_ struct salvage *v = mem_zalloc(1, sizeof *v);
    if (!v)
        return err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
    v->s = s;
    str_fmt(wal, sizeof wal, "%s-wal", s->path);
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, s->path, O_RDONLY, 0), wal_fd = fd_open(AT_FDCWD, wal, O_RDONLY, 0);
    if (fd < 0)
        return file_error(s, err, -fd, "cannot open it");
    v->fd = fd;
    v->wal = wal_fd;
    map_init(&v->wal_pages, PAGES_MAX);
    buf_init(&v->row, ROW_MAX);
    int rc = make_copy(v, err);
    if (!rc && !v->taken)
        rc = err_set(err, LT_ECORRUPT, "store %s: damaged so that nothing can be read; choose another --db", s->path);
    if (!rc)
        swap_in(v);
    sqlite3_close_v2(v->out);
    map_release(&v->wal_pages);
    buf_release(&v->row);
    return rc;
}

bool salvage_after(struct store *s, int *rc, bool stopped, struct err *err)
{
    if (*rc != LT_ECORRUPT || stopped || s->mode != STORE_READ || s->salvaged || s->depth)
        return false;
    *rc = salvage(s, err);
    return *rc == 0;
}

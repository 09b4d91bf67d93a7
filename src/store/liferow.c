/* A life as a row: its key in columns, all else in one blob. Bytes: FORMAT.md, "Life". */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

void summary_init(struct summary *sum)
{
    *sum = (struct summary){.first_ms = MS_INVALID, .last_ms = MS_INVALID};
    for (int i = 0; i < METRIC_N; i++)
        sum->first[i] = sum->last[i] = METRIC_NA;
}

void life_init(struct life_full *l, int64_t id)
{
    memset(l, 0, sizeof *l);
    l->id = id;
    l->raw_end_ms = MS_INVALID;
    summary_init(&l->sum);
}

void summary_add(struct summary *sum, int64_t ts_ms, const int64_t *v)
{
    if (!sum->samples || ts_ms < sum->first_ms)
        sum->first_ms = ts_ms;
    if (!sum->samples || ts_ms > sum->last_ms)
        sum->last_ms = ts_ms;
    sum->samples++;
    for (int i = 0; i < METRIC_N; i++) {
        if (v[i] < 0)
            continue;
        if (sum->first[i] == METRIC_NA)
            sum->first[i] = v[i];
        sum->last[i] = v[i];
    }
}

/* ---- writing ---- */

int summary_put(struct buf *b, const struct summary *sum)
{
    uint64_t mask = 0;
    for (int i = 0; i < METRIC_N; i++)
        if (sum->first[i] != METRIC_NA)
            mask |= UINT64_C(1) << i;
    int rc = buf_put_varint(b, sum->samples);
    if (sum->samples) {
        rc |= buf_put_varint(b, zigzag(sum->first_ms));
        rc |= buf_put_varint(b, (uint64_t)(sum->last_ms - sum->first_ms));
        rc |= buf_put_varint(b, mask);
    }
    for (uint64_t left = sum->samples ? mask : 0; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        rc |= buf_put_varint(b, (uint64_t)sum->first[i]);
        rc |= buf_put_varint(b, zigzag((int64_t)((uint64_t)sum->last[i] - (uint64_t)sum->first[i])));
    }
    return rc ? LT_ENOMEM : 0;
}

static int put_life(struct buf *b, const struct life_full *l, int64_t comm, int64_t role)
{
    int rc = buf_put_varint(b, zigzag(l->info.ppid));
    rc |= buf_put_varint(b, zigzag(l->info.start_wall_ns));
    rc |= buf_put_varint(b, (uint64_t)comm);
    rc |= buf_put_varint(b, (uint64_t)role);
    rc |= buf_put_varint(b, (uint64_t)l->upto_seq);
    rc |= buf_put_varint(b, l->raw_end_ms == MS_INVALID ? 0 : 1 + zigzag(l->raw_end_ms));
    if (l->end.cause != LIFE_RUNNING) {
        rc |= buf_put_varint(b, zigzag(l->end.wall_ns));
        rc |= buf_put_varint(b, zigzag(l->end.exit_code));
        rc |= buf_put_varint(b, zigzag(l->end.signal));
    }
    return rc ? LT_ENOMEM : summary_put(b, &l->sum);
}

static void boot_text(const uint8_t boot[16], char out[40])
{
    str_copy(out, 40, "boot:");
    for (int i = 0; i < 16; i++)
        str_fmt(out + 5 + 2 * i, 3, "%02x", boot[i]);
}

int life_write(struct store *s, const struct life_full *l, struct err *err)
{
    struct buf *b = &s->row;
    int64_t boot, comm, role;
    char text[40];
    buf_clear(b);
    boot_text(l->info.key.boot_id, text);
    int rc = word_id(s, WORD_BOOT, text, &boot, err);
    if (!rc)
        rc = word_id(s, WORD_LIFE, l->info.comm, &comm, err);
    if (!rc)
        rc = word_id(s, WORD_LIFE, l->info.role, &role, err);
    if (rc)
        return rc;
    rc = put_life(b, l, comm, role);
    if (rc)
        return err_set(err, rc, "store %s: %s", s->path, err_sentence(rc));
    return db_put(s, STMT_LIFE_PUT, TABLE_LIFE, err, VI(l->id), VI(l->info.target_id), VI(boot), VI(l->info.key.pid),
                  VI(l->info.key.start), VI(l->end.cause), VB(b->p, b->len));
}

/* ---- reading ---- */

static uint64_t get(struct cursor *c)
{
    uint64_t v = 0;
    c->bad |= varint_get(c->p, c->len, &c->pos, &v) != 0;
    return v;
}

void summary_get(struct cursor *c, struct summary *sum)
{
    summary_init(sum);
    sum->samples = get(c);
    if (!sum->samples)
        return;
    sum->first_ms = unzigzag(get(c));
    sum->last_ms = (int64_t)((uint64_t)sum->first_ms + get(c));
    for (uint64_t left = get(c); left && !c->bad; left &= left - 1) {
        int i = __builtin_ctzll(left);
        int64_t first = (int64_t)get(c), last = (int64_t)((uint64_t)first + (uint64_t)unzigzag(get(c)));
        if (i >= METRIC_N) /* a metric of a newer build */
            continue;
        c->bad |= first < 0 || last < 0;
        sum->first[i] = first;
        sum->last[i] = last;
    }
}

static int read_boot(struct store *s, int64_t word, uint8_t out[16], struct err *err)
{
    char text[WORD_MAX + 1];
    int rc = word_text(s, word, text, err);
    memset(out, 0, 16);
    if (rc || strlen(text) != 37 || !str_starts(text, "boot:"))
        return rc;
    for (int i = 0; i < 32; i++) {
        char ch = text[5 + i];
        int nibble = ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : ch >= '0' && ch <= '9' ? ch - '0' : 0;
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | nibble);
    }
    return 0;
}

int life_read(struct store *s, const struct rows *r, struct life_full *ret, struct err *err)
{
    char text[WORD_MAX + 1] = ""; /* stays so when a row cannot be read */
    struct cursor c = {0};
    struct life_full *l = ret;
    life_init(l, rows_int(r, 0));
    l->info.target_id = rows_int(r, 1);
    l->info.key.pid = (int32_t)rows_int(r, 3);
    l->info.key.start = (uint64_t)rows_int(r, 4);
    l->end.cause = (enum life_end_cause)rows_int(r, 5);
    c.p = rows_blob(r, 6, &c.len);
    l->info.ppid = (int32_t)unzigzag(get(&c));
    l->info.start_wall_ns = unzigzag(get(&c));
    int64_t comm = (int64_t)get(&c), role = (int64_t)get(&c);
    l->upto_seq = (int64_t)get(&c);
    uint64_t raw_end = get(&c);
    l->raw_end_ms = raw_end ? unzigzag(raw_end - 1) : MS_INVALID;
    l->end.wall_ns = CLOCK_INVALID;
    if (l->end.cause != LIFE_RUNNING) {
        l->end.wall_ns = unzigzag(get(&c));
        l->end.exit_code = (int32_t)unzigzag(get(&c));
        l->end.signal = (int32_t)unzigzag(get(&c));
    }
    summary_get(&c, &l->sum);
    if (c.bad || c.pos != c.len) { /* invariant L2 */
        store_lost(s, "the row of life %lld cannot be read", (long long)l->id);
        return LT_ECORRUPT;
    }
    int rc = read_boot(s, rows_int(r, 2), l->info.key.boot_id, err);
    if (!rc)
        rc = word_text(s, comm, text, err);
    str_copy(l->info.comm, sizeof l->info.comm, text);
    if (!rc)
        rc = word_text(s, role, text, err);
    str_copy(l->info.role, sizeof l->info.role, text);
    return rc;
}

static int life_one(struct store *s, struct rows *r, int rc, const char *what, struct life_full *ret, struct err *err)
{
    if (!rc)
        rc = rows_next(r, err);
    if (rc == 1)
        return life_read(s, r, ret, err);
    return rc < 0 ? rc : err_set(err, LT_ENOENT, "store %s: no such life%s", s->path, what);
}

int life_get(struct store *s, int64_t id, struct life_full *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_LIFE_GET, TABLE_LIFE, err, VI(id));
    return life_one(s, &r, rc, "", ret, err);
}

int life_lookup(struct store *s, int64_t id, struct life_full *ret, struct err *err)
{
    int rc = life_get(s, id, ret, NULL);
    if (!rc)
        return 1;
    life_init(ret, id);
    if (rc == LT_ENOENT || (rc == LT_ECORRUPT && (sqlite3_errcode(s->db) & 0xff) != SQLITE_CORRUPT))
        return 0;
    return err_set(err, rc, "store %s: cannot read a life: %s", s->path, err_sentence(rc));
}

int life_find(struct store *s, const struct life_info *info, int sign, struct life_full *ret, struct err *err)
{
    int64_t boot;
    char text[40];
    boot_text(info->key.boot_id, text);
    int rc = word_find(s, text, &boot, err);
    if (rc)
        return rc;
    _cleanup_rows_ struct rows r = {0};
    rc = rows_open(&r, s, STMT_LIFE_FIND, TABLE_LIFE, err, VI(info->target_id), VI(boot), VI(info->key.pid), VI(info->key.start),
                   VI(sign));
    return life_one(s, &r, rc, " of that key", ret, err);
}

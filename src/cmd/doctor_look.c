#include "cmd/doctor_look.h"

#include <stdlib.h>

#define ROWS_MAX 200000
#define KEYS_MAX 20000
#define LIVES_MAX 20000

int look_init(struct look *l)
{
    *l = (struct look){ 0 };
    vec_init(&l->lives, sizeof(struct life_row), LIVES_MAX);
    vec_init(&l->rows, sizeof(struct look_row), ROWS_MAX);
    vec_init(&l->keys, sizeof(struct look_key), KEYS_MAX);
    vec_init(&l->changes, sizeof(struct output_change), KEYS_MAX);
    return strset_new(&l->names, KEYS_MAX, (size_t)4 << 20);
}

void look_release(struct look *l)
{
    vec_release(&l->lives);
    vec_release(&l->rows);
    vec_release(&l->keys);
    vec_release(&l->changes);
    strset_free(l->names);
}

/* ---- what the sampler tells ----------------------------------------------------------------------------------- */

static int on_begin(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    struct look *l = ctx;
    struct life_row *row;

    VEC_EACH(struct life_row, known, &l->lives)
        if (life_key_eq(&known->info.key, &info->key)) {
            *ret_life_id = known->id;
            return 0;
        }
    row = vec_push(&l->lives);
    if (!row)
        return l->lives.n >= l->lives.max ? LT_ELIMIT : LT_ENOMEM;
    row->id = *ret_life_id = (int64_t)l->lives.n;
    row->info = *info;
    row->first_ns = row->last_ns = CLOCK_INVALID;
    for (int m = 0; m < METRIC_N; m++)
        row->first[m] = row->last[m] = METRIC_NA;
    return 0;
}

static struct life_row *life_of(const struct look *l, int64_t id)
{
    return id > 0 && (size_t)id <= l->lives.n ? vec_at(&l->lives, (size_t)id - 1) : NULL;
}

static void on_end(void *ctx, int64_t life_id, const struct life_end *end, const int64_t last[METRIC_N])
{
    struct life_row *row = life_of(ctx, life_id);

    (void)last;
    if (row && end->cause != LIFE_UNWATCHED) /* that is only us going */
        row->end = *end;
}

static void on_note(void *ctx, const char *target, const char *kind, const char *text)
{
    struct look *l = ctx;

    (void)target;
    if (str_eq(kind, "found") || str_eq(kind, "gone") || str_eq(kind, "waiting") || l->nmissing >= LOOK_MISSING_MAX)
        return;
    str_copy(l->missing_text[l->nmissing], sizeof l->missing_text[0], text);
    l->missing[l->nmissing] = l->missing_text[l->nmissing];
    l->nmissing++;
}

/* The few names there are, as constants: what a caller passes need not outlive the call. */
static const char *kind_of(const char *what)
{
    return str_eq(what, "path") ? "path" : str_eq(what, "peer") ? "peer" : "other";
}

static void on_histogram(void *ctx, int64_t life_id, const char *what, const char *key, int64_t count)
{
    struct look *l = ctx;
    struct look_key *k;
    uint32_t id;

    if (!l->brought)
        l->looks++;
    l->brought = true;
    what = kind_of(what);
    if (strset_id(l->names, key, strlen(key), &id))
        return; /* more different names than are kept: the first ones are the ones to compare */
    VEC_EACH(struct look_key, known, &l->keys)
        if (known->life_id == life_id && known->key == id && known->what == what) {
            known->last = count;
            known->last_look = l->looks;
            return;
        }
    k = vec_push(&l->keys);
    if (k)
        *k = (struct look_key){ life_id, what, id, count, count, l->looks, l->looks };
}

struct watch_sink look_sink(struct look *l)
{
    return (struct watch_sink){ .ctx = l, .begin = on_begin, .end = on_end, .note = on_note, .histogram = on_histogram };
}

/* ---- samples -------------------------------------------------------------------------------------------------- */

static void note_values(struct life_row *life, const struct sample *s, int64_t ts_ns)
{
    if (life->first_ns == CLOCK_INVALID)
        life->first_ns = ts_ns;
    life->last_ns = ts_ns;
    life->samples++;
    for (int m = 0; m < METRIC_N; m++) {
        if (s->v[m] == METRIC_NA)
            continue;
        if (life->first[m] == METRIC_NA)
            life->first[m] = s->v[m];
        life->last[m] = s->v[m];
    }
}

int look_put(struct look *l, const struct sweep *sweep)
{
    l->brought = false;
    if (l->rows.n + sweep->n > l->rows.max) {
        l->full = true;
        return LT_ELIMIT;
    }
    for (size_t i = 0; i < sweep->n; i++) {
        struct life_row *life = life_of(l, sweep->rows[i].life_id);
        struct look_row *row = life ? vec_push(&l->rows) : NULL;

        if (!life)
            continue;
        if (!row)
            return LT_ENOMEM;
        *row = (struct look_row){ sweep->wall_ns, sweep->rows[i] };
        note_values(life, &sweep->rows[i], sweep->wall_ns);
    }
    return 0;
}

static int add_points(const struct look *l, struct series *s, size_t life)
{
    int r = 0;

    VEC_EACH(struct look_row, row, &l->rows) {
        struct point_values v[METRIC_N];
        struct point p = { row->ts_ns, 1, 0 };

        if (row->sample.life_id != (int64_t)life + 1)
            continue;
        for (int m = 0; m < METRIC_N; m++)
            v[m] = (struct point_values){ row->sample.v[m], row->sample.v[m], row->sample.v[m], row->sample.v[m], row->sample.v[m] };
        r = series_point(s, life, &p, v);
        if (r)
            break;
    }
    return r;
}

static int add_all_points(const struct look *l, struct series *s)
{
    int r = 0;

    for (int roots = 1; roots >= 0; roots--)
        for (size_t i = 0; i < s->lives.n && !r; i++)
            if (series_life_at(s, i)->root == roots)
                r = add_points(l, s, i);
    return r;
}

int look_series(struct look *l, const char *name, struct series **ret)
{
    _cleanup_series_ struct series *s = NULL;
    int r = series_new(&s, name, 0, INT64_MAX);

    VEC_EACH(struct life_row, row, &l->lives)
        r = r ? r : series_life(s, row);
    VEC_EACH(struct look_row, row, &l->rows)
        r = r ? r : series_time(s, row->ts_ns);
    if (!r)
        r = series_plan(s);
    if (!r)
        r = add_all_points(l, s);
    if (!r)
        r = series_finish(s);
    if (r)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}

/* ---- descriptors by path and peer ----------------------------------------------------------------------------- */

static int by_growth(const void *a, const void *b)
{
    const struct output_change *x = a, *y = b;
    int64_t gx = x->after - x->before, gy = y->after - y->before;

    return (gx < gy) - (gx > gy);
}

/* First look of that life, so that a name seen only later counts from zero. */
static size_t first_look_of(const struct look *l, const struct look_key *k)
{
    size_t first = SIZE_MAX;

    VEC_EACH(struct look_key, other, &l->keys)
        if (other->life_id == k->life_id)
            first = MIN(first, other->first_look);
    return first;
}

static int add_change(struct look *l, const struct look_key *k)
{
    int64_t before = k->first_look == first_look_of(l, k) ? k->first : 0, after = k->last_look == l->looks ? k->last : 0;
    const char *key = strset_str(l->names, k->key);
    struct output_change *c;

    VEC_EACH(struct output_change, known, &l->changes)
        if (known->what == k->what && known->key == key) {
            known->before += before;
            known->after += after;
            return 0;
        }
    c = vec_push(&l->changes);
    if (!c)
        return LT_ENOMEM;
    *c = (struct output_change){ k->what, key, before, after };
    return 0;
}

int look_changes(struct look *l)
{
    size_t kept = 0;
    struct output_change *c;

    if (l->looks < 2)
        return 0;
    VEC_EACH(struct look_key, k, &l->keys)
        if (add_change(l, k))
            return LT_ENOMEM;
    c = l->changes.items;
    for (size_t i = 0; i < l->changes.n; i++)
        if (c[i].after != c[i].before)
            c[kept++] = c[i];
    l->changes.n = kept;
    if (kept)
        qsort(c, kept, sizeof *c, by_growth);
    return 0;
}

/* What the store's files offer one another, file by file. Not for other folders. */
#ifndef LT_STORE_PARTS_H
#define LT_STORE_PARTS_H

#include "store/state.h"

/* ---- schema.c ---- */
enum meta_id { META_VERSION = 1, META_SEALED_MS = 2, META_FOLDED_ID = 3, META_SCHEMA = 4, META_BUDGET = 5 };
int meta_get(struct store *s, enum meta_id id, int64_t fallback, int64_t *ret, struct err *err);
int meta_put(struct store *s, enum meta_id id, int64_t value, struct err *err);
int schema_open(struct store *s, struct err *err);   /* pragmas, creation, migration, version check */
int schema_set_up(struct store *s, struct err *err); /* pragmas of every connection */
int schema_migrate(struct store *s, int64_t from, struct err *err);
extern const int schema_version;
extern const char schema_objects[];                  /* their quoted names, for a test */

/* ---- lock.c ---- */
int lock_take(struct store *s, struct err *err);
void lock_drop(struct store *s);
int32_t lock_holder(const char *path);               /* pid of the watcher, 0: none */

/* ---- words.c: texts by number ---- */
enum word_use { WORD_REQUEST, WORD_LIFE, WORD_BOOT }; /* the later ones find room when there is none left for those before */
int word_id(struct store *s, enum word_use use, const char *text, int64_t *ret_id, struct err *err); /* finds or makes */
int word_find(struct store *s, const char *text, int64_t *ret_id, struct err *err); /* LT_ENOENT */
int word_text(struct store *s, int64_t id, char out[WORD_MAX + 1], struct err *err); /* "?" when it cannot be read */
int64_t words_max(const struct store *s);
/* Keys of histograms: a table of their own, for they are many and come and go. Only the watcher makes and drops them. */
int key_id(struct store *s, const char *text, int64_t *ret_id, struct err *err); /* 1: there are too many, it is "(other)" */
int key_text(struct store *s, int64_t id, char out[WORD_MAX + 1], struct err *err);
int64_t keys_max(const struct store *s);

/* ---- liferow.c: a life as a row ---- */
struct life_full {
    int64_t id;
    struct life_info info;
    struct life_end end;
    int64_t upto_seq;                  /* sweeps up to this one are in `sum` */
    int64_t raw_end_ms;                /* end of its last raw chunk, MS_INVALID: it has none (invariant K7) */
    struct summary sum;
};
struct cursor { const uint8_t *p; size_t len, pos; bool bad; };
void summary_init(struct summary *sum);
int summary_put(struct buf *b, const struct summary *sum);
void summary_get(struct cursor *c, struct summary *sum); /* c->bad when it cannot be read */
void summary_add(struct summary *sum, int64_t ts_ms, const int64_t *v);
void life_init(struct life_full *l, int64_t id); /* no samples, nothing known */
int life_write(struct store *s, const struct life_full *life, struct err *err);
/* From the current row of a LIFE_* statement: 0, LT_ECORRUPT (counted in lost_rows). */
int life_read(struct store *s, const struct rows *r, struct life_full *ret, struct err *err);
int life_get(struct store *s, int64_t id, struct life_full *ret, struct err *err); /* LT_ENOENT */
/* 1: found; 0: not there or lost to damage, *ret is a life of which nothing is known; < 0: LT_E*. */
int life_lookup(struct store *s, int64_t id, struct life_full *ret, struct err *err);
int life_find(struct store *s, const struct life_info *info, int sign, struct life_full *ret, struct err *err);

/* ---- lives.c: the watcher's table ---- */
struct live *live_find(struct store *s, int64_t id);
struct live *live_add(struct store *s, int64_t id);  /* NULL: no memory, or too many */
void live_remove(struct store *s, int64_t id);
int lives_load(struct store *s, struct err *err);    /* at open: every life the unsealed sweeps speak of */
int lives_refresh(struct store *s, struct err *err); /* the same for readers, when the log has changed */

/* ---- queue.c ---- */
int queue_put(struct store *s, enum record_type type, const void *a, size_t alen, const void *b, size_t blen, struct err *err);
void queue_init(struct queue *q, int64_t max_bytes);
int queue_write(struct store *s, struct err *err);   /* inside a write transaction */
void queue_clear(struct queue *q);                   /* after it was committed */
void queue_lost_sweep(struct queue *q, int64_t ts_ms); /* a sweep that found no room: it is part of the gap */

/* ---- hist.c ---- */
struct hist_record { int64_t life_id, ts_ms, count; };
/* Collects the rows of one life, moment and kind, and writes them as one row when the next begins, or at hist_flush. */
struct hist_batch {
    struct store *s;
    int64_t life_id, ts_ms, what;      /* what: a word */
    struct vec keys;                   /* struct hist_key */
};
int hist_add(struct hist_batch *b, const struct hist_record *r, const char *what, const char *key, struct err *err);
int hist_flush(struct hist_batch *b, struct err *err);
/* The keys of a row's data; LT_ECORRUPT, or what fn returns that is not 0. */
int hist_parse(const uint8_t *p, size_t len, int (*fn)(void *ctx, int64_t key, int64_t count), void *ctx);

/* ---- log.c: unsealed sweeps ---- */
struct log_visit {
    void *ctx;
    int64_t lo, hi;                    /* lives */
    int64_t after_seq, upto_seq;
    int64_t *(*slot)(void *ctx, int64_t life_id); /* NULL: ids only, as in sweep.h */
    void (*blank)(void *ctx);          /* a key row begins: every slot is all METRIC_NA */
    int (*row)(void *ctx, int64_t seq, int64_t ts_ms, int64_t life_id, const int64_t *v);
};
int log_read(struct store *s, const struct log_visit *visit, struct err *err);

/* ---- chunks.c: chunks as rows ---- */
int chunk_put(struct store *s, int64_t life, int tier, const struct chunk *c, struct err *err);
/* From the current row of a CHUNK_* statement: its heads into s->view, or all of it into c; LT_ECORRUPT counts in lost_rows. */
int chunk_head(struct store *s, const struct rows *r, struct err *err);
int chunk_row(struct store *s, const struct rows *r, uint64_t wanted, struct chunk *c, struct err *err);
/* Puts the points of `c` among the raw chunks of a life, which stay in order and apart; on equal times c's win. `*raw_end_ms`
 * grows with the end of the last. */
int chunk_merge(struct store *s, int64_t life, const struct chunk *c, int64_t *raw_end_ms, struct err *err);
int chunk_make_scratch(struct store *s, struct err *err);

/* ---- write.c ---- */
int write_begin(struct store *s, struct err *err);         /* a transaction of its own, or part of the open one */
int write_end(struct store *s, int rc, struct err *err);   /* keeps it when rc is 0; returns rc or what went wrong */

/* ---- requests.c ---- */
void rcache_drop(struct store *s);                   /* after a roll-back: series it made are gone */

/* ---- import.c ---- */
int import_settle(struct store *s, struct err *err); /* before a commit: summaries of lives whose samples were not appended */

/* ---- seal.c, thin.c, retain.c, budget.c ---- */
bool seal_active(const struct store *s);                     /* a block is half sealed */
int seal_begin(struct store *s, struct err *err);            /* takes the oldest block of sweeps; there must be one */
int seal_some(struct store *s, bool whole, struct err *err); /* some of its lives, or all that are left; inside a write transaction */
void seal_committed(struct store *s);                        /* that transaction was kept */
void seal_free(struct seal *seal);
int thin_life(struct store *s, int64_t life, int64_t upto_ms, struct err *err); /* raw before that hour becomes bins; inside a transaction */
int retain_step(struct store *s, int64_t now_ms, struct err *err);
int budget_agree(struct store *s, struct err *err);          /* at open: what the last watch said, or this one says */
/* Makes room for more_bytes within the disk budget; LT_EFULL when there is none to be had. */
int budget_keep(struct store *s, int64_t more_bytes, struct err *err);

/* ---- keys.c ---- */
void keys_used(struct store *s, int64_t id);                 /* a key was given out: a pass that is under way must not drop it */
/* A bounded part of the pass that drops keys no histogram names; *ret_done when it is over. */
int keys_age(struct store *s, int64_t now_ms, bool *ret_done, struct err *err);

/* ---- watcher.c ---- */
int watcher_open(struct store *s, struct err *err);
void watcher_close(struct store *s);

/* ---- info.c ---- */
int64_t file_bytes(const struct store *s, const char *suffix); /* of the file, "-wal", "-shm"; 0: not there */

/* ---- store.c, salvage.c ---- */
int file_error(const struct store *s, struct err *err, int errnum, const char *what); /* "store PATH: what: why; what to do" */
void config_defaults(struct store_config *config);
bool salvage_after(struct store *s, int *rc, bool stopped, struct err *err); /* whether to read again: *rc said damage, and it was salvaged */
int salvage(struct store *s, struct err *err);       /* s->db becomes a copy of what can be read; LT_ECORRUPT: nothing can */
void store_lost(struct store *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

/* Every SQL statement of the store but the schema's (schema.c). Rows that carry a checksum are read whole, in the order of
 * their table's columns, crc last (db.h). */
#ifndef LT_STORE_SQL_H
#define LT_STORE_SQL_H

#define STORE_STATEMENTS(X) \
    X(BEGIN_READ, "BEGIN") \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE") \
    X(COMMIT, "COMMIT") \
    X(ROLLBACK, "ROLLBACK") \
    X(META_GET, "SELECT id, value, crc FROM meta WHERE id = ?1") \
    X(META_PUT, "INSERT OR REPLACE INTO meta(id, value, crc) VALUES(?1, ?2, ?3)") \
    X(META_ALL, "SELECT id, value, crc FROM meta WHERE id > ?1 ORDER BY id") \
    X(WORD_FIND, "SELECT id, text, crc FROM word WHERE text = ?1") \
    X(WORD_GET, "SELECT id, text, crc FROM word WHERE id = ?1") \
    X(WORD_ALL, "SELECT id, text, crc FROM word WHERE id > ?1 ORDER BY id") \
    X(WORD_LAST, "SELECT coalesce(max(id), 0) FROM word") \
    X(WORD_PUT, "INSERT INTO word(id, text, crc) VALUES(?1, ?2, ?3)") \
    X(KEY_FIND, "SELECT id, text, crc FROM hkey WHERE text = ?1") \
    X(KEY_GET, "SELECT id, text, crc FROM hkey WHERE id = ?1") \
    X(KEY_ALL, "SELECT id, text, crc FROM hkey WHERE id > ?1 ORDER BY id") \
    X(KEY_LAST, "SELECT coalesce(max(id), 0) FROM hkey") \
    X(KEY_COUNT, "SELECT count(*) FROM hkey") \
    X(KEY_PUT, "INSERT INTO hkey(id, text, crc) VALUES(?1, ?2, ?3)") \
    X(KEY_DROP, "DELETE FROM hkey WHERE id = ?1") \
    X(TARGET_FIND, "SELECT id, name, selector, crc FROM target WHERE name = ?1") \
    X(TARGET_LAST, "SELECT coalesce(max(id), 0) FROM target") \
    X(TARGET_PUT, "INSERT OR REPLACE INTO target(id, name, selector, crc) VALUES(?1, ?2, ?3, ?4)") \
    X(TARGET_ALL, "SELECT id, name, selector, crc FROM target WHERE id > ?1 ORDER BY id") \
    X(LIFE_FIND, "SELECT id, target, boot, pid, start, cause, data, crc FROM life" \
                 " WHERE target = ?1 AND boot = ?2 AND pid = ?3 AND start = ?4 AND id * ?5 > 0") \
    X(LIFE_GET, "SELECT id, target, boot, pid, start, cause, data, crc FROM life WHERE id = ?1") \
    X(LIFE_LAST, "SELECT coalesce(max(id), 0) FROM life WHERE id > 0") \
    X(LIFE_FIRST, "SELECT coalesce(min(id), 0) FROM life WHERE id < 0") \
    X(LIFE_PUT, "INSERT OR REPLACE INTO life(id, target, boot, pid, start, cause, data, crc)" \
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)") \
    X(LIFE_ALL, "SELECT id, target, boot, pid, start, cause, data, crc FROM life WHERE id > ?1 ORDER BY id") \
    X(LIFE_RUNNING, "SELECT id, target, boot, pid, start, cause, data, crc FROM life" \
                    " WHERE target = ?1 AND id > ?2 AND cause = 0 ORDER BY id") \
    X(LIFE_TARGET, "SELECT id, target, boot, pid, start, cause, data, crc FROM life WHERE target = ?1") \
    X(LIFE_DROP_ENDED, "DELETE FROM life WHERE id IN (SELECT id FROM life WHERE cause <> 0 ORDER BY id LIMIT 64)") \
    X(SWEEP_LAST, "SELECT coalesce(max(seq), 0) FROM sweep") \
    X(SWEEP_NEWEST, "SELECT coalesce(max(ts), -0x7fffffffffffffff - 1) FROM sweep") \
    X(SWEEP_RANGE, "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM sweep") \
    X(SWEEP_COUNT, "SELECT count(*), coalesce(sum(length(data)), 0) FROM sweep") \
    X(SWEEP_ALL, "SELECT seq, ts, data, crc FROM sweep WHERE seq > ?1 AND seq <= ?2 ORDER BY seq") \
    X(SWEEP_PUT, "INSERT INTO sweep(seq, ts, data, crc) VALUES(?1, ?2, ?3, ?4)") \
    X(SWEEP_DROP, "DELETE FROM sweep WHERE seq <= ?1") \
    X(CHUNK_LAST, "SELECT coalesce(max(id), 0) FROM chunk") \
    X(CHUNK_PUT, "INSERT INTO chunk(id, life, tier, ts, data, crc) VALUES(?1, ?2, ?3, ?4, ?5, ?6)") \
    X(CHUNK_DROP, "DELETE FROM chunk WHERE id = ?1") \
    X(CHUNK_GET, "SELECT id, life, tier, ts, data, crc FROM chunk WHERE id = ?1") \
    X(CHUNK_ALL, "SELECT id, life, tier, ts, data, crc FROM chunk WHERE id > ?1 ORDER BY id") \
    X(CHUNK_LIFE, "SELECT id, life, tier, ts, data, crc FROM chunk WHERE life = ?1 AND tier = ?2 AND ts <= ?4" \
                  " AND ts >= coalesce((SELECT max(ts) FROM chunk WHERE life = ?1 AND tier = ?2 AND ts <= ?3), ?3) ORDER BY ts") \
    X(CHUNK_START, "SELECT coalesce(min(ts), -0x7fffffffffffffff - 1) FROM chunk WHERE life = ?1 AND tier = ?2") \
    X(CHUNK_OLDEST, "SELECT id, life, ts FROM chunk WHERE tier = ?1 ORDER BY id LIMIT 1") \
    X(CHUNK_FIRST, "SELECT id, life, tier, ts, data, crc FROM chunk WHERE life = ?1 AND tier = 0 AND ts < ?2 ORDER BY ts LIMIT 1") \
    X(CHUNK_LIVES, "SELECT min(life) FROM chunk WHERE life > ?1") \
    X(CHUNK_DROP_OLD, "DELETE FROM chunk WHERE life = ?1 AND tier = ?2 AND ts < ?3") \
    X(EVENT_PUT, "INSERT INTO event(id, target, ts, kind, text, crc) VALUES(?1, ?2, ?3, ?4, ?5, ?6)") \
    X(EVENT_LAST, "SELECT coalesce(max(id), 0) FROM event") \
    X(EVENT_SAME, "SELECT count(*) FROM event WHERE target = ?1 AND ts = ?2 AND kind = ?3 AND text = ?4") \
    X(EVENT_ALL, "SELECT id, target, ts, kind, text, crc FROM event WHERE id > ?1 ORDER BY id") \
    X(EVENT_TARGET, "SELECT id, target, ts, kind, text, crc FROM event WHERE target = ?1 AND ts >= ?2 AND ts <= ?3 ORDER BY ts, id") \
    X(EVENT_TRIM, "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?1") \
    X(EVENT_SIZE, "SELECT count(*), coalesce(sum(length(CAST(text AS BLOB)) + 64), 0) FROM event") \
    X(GAP_SIZE, "SELECT count(*), coalesce(sum(length(CAST(why AS BLOB)) + 32), 0) FROM gap") \
    X(GAP_PUT, "INSERT OR REPLACE INTO gap(id, ts, until, why, crc) VALUES(?1, ?2, ?3, ?4, ?5)") \
    X(GAP_LAST, "SELECT coalesce(max(id), 0) FROM gap") \
    X(GAP_ALL, "SELECT id, ts, until, why, crc FROM gap WHERE id > ?1 ORDER BY id") \
    X(GAP_SPAN, "SELECT id, ts, until, why, crc FROM gap WHERE ts <= ?2 AND until >= ?1 ORDER BY ts, id") \
    X(GAP_TRIM, "DELETE FROM gap WHERE id <= (SELECT max(id) FROM gap) - ?1") \
    X(RSERIES_FIND, "SELECT id, target, endpoint, version, outcome, stream, pid, import, crc FROM rseries WHERE target = ?1" \
                    " AND endpoint = ?2 AND version = ?3 AND outcome = ?4 AND stream = ?5 AND pid = ?6 AND import = ?7") \
    X(RSERIES_GET, "SELECT id, target, endpoint, version, outcome, stream, pid, import, crc FROM rseries WHERE id = ?1") \
    X(RSERIES_LAST, "SELECT coalesce(max(id), 0) FROM rseries") \
    X(RSERIES_ENDPOINTS, "SELECT count(DISTINCT endpoint), coalesce(max(endpoint = ?2), 0), count(*) FROM rseries" \
                         " WHERE target = ?1") \
    X(RSERIES_PUT, "INSERT INTO rseries(id, target, endpoint, version, outcome, stream, pid, import, crc)" \
                   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)") \
    X(RSERIES_ALL, "SELECT id, target, endpoint, version, outcome, stream, pid, import, crc FROM rseries WHERE id > ?1 ORDER BY id") \
    X(REQUEST_GET, "SELECT id, n, crc FROM request WHERE id = ?1") \
    X(REQUEST_PUT, "INSERT OR REPLACE INTO request(id, n, crc) VALUES(?1, ?2, ?3)") \
    X(REQUEST_SPAN, "SELECT id, n, crc FROM request WHERE id >= ?1 AND id <= ?2 ORDER BY id") \
    X(REQUEST_DROP, "DELETE FROM request WHERE id = ?1") \
    X(REQUEST_DROP_TO, "DELETE FROM request WHERE id < ?1") \
    X(REQUEST_OLDEST, "SELECT coalesce(min(id), -1) FROM request") \
    X(HIST_PUT, "INSERT OR REPLACE INTO hist(id, life, ts, what, data, crc) VALUES(?1, ?2, ?3, ?4, ?5, ?6)") \
    X(HIST_LAST, "SELECT coalesce(max(id), 0) FROM hist") \
    X(HIST_SAME, "SELECT id, life, ts, what, data, crc FROM hist WHERE life = ?1 AND ts = ?2 AND what = ?3") \
    X(HIST_BEFORE, "SELECT id, life, ts, what, data, crc FROM hist WHERE life = ?1 AND what = ?2 AND ts < ?3" \
                   " ORDER BY ts DESC LIMIT 1") \
    X(HIST_LIFE, "SELECT id, life, ts, what, data, crc FROM hist WHERE life = ?1 AND ts >= ?2 AND ts <= ?3 ORDER BY ts, id") \
    X(HIST_ALL, "SELECT id, life, ts, what, data, crc FROM hist WHERE id > ?1 ORDER BY id") \
    X(HIST_DROP, "DELETE FROM hist WHERE id = ?1") \
    X(HIST_DROP_TO, "DELETE FROM hist WHERE id <= ?1") \
    X(HIST_OLDEST, "SELECT coalesce(min(id), 0) FROM hist") \
    X(COUNTS, "SELECT (SELECT count(*) FROM target), (SELECT count(*) FROM life), (SELECT count(*) FROM event)," \
              " (SELECT count(*) FROM gap), (SELECT count(*) FROM request), (SELECT count(*) FROM hist), (SELECT count(*) FROM sweep)") \
    X(FREE_PAGES, "PRAGMA freelist_count") \
    X(VACUUM_SOME, "PRAGMA incremental_vacuum(256)") \
    X(CHECKPOINT, "PRAGMA wal_checkpoint(TRUNCATE)") \
    X(SYNC_FULL, "PRAGMA synchronous = FULL") \
    X(SYNC_NORMAL, "PRAGMA synchronous = NORMAL")

#endif

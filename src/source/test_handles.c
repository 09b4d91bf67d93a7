/* What is read at lower rates: what changes still shows in the time that is promised, and is never made up. */
#include <string.h>

#include "source/socketpool.h"
#include "source/test_witness.h"

#define MOST 60 /* sweeps that any value may be old (source.h) */

/* Sweeps until the metric has the value, the process kept running; -1: not within `most`. */
static int sweeps_until(struct witness *t, const struct puppet *p, enum metric_id metric, int64_t value, int most)
{
    for (int i = 1; i <= most; i++) {
        puppet_does(p, 'w');
        witness_sweep(t);
        if (witness_row(t, p->pid)[metric] == value)
            return i;
    }
    return -1;
}

/* Long enough for everything to be read as seldom as it ever is. */
static void settle(struct witness *t, const struct puppet *p)
{
    for (int i = 0; i < 2 * MOST; i++) {
        puppet_does(p, 'w');
        witness_sweep(t);
    }
}

static void test_kinds_come_back(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t files, anon;

    (void)state;
    for (int i = 0; i < 2; i++)
        puppet_does(&p, 'o'); /* so many that one more is no more than 2 % */
    puppet_does(&p, 's');
    witness_add_pid(t, p.pid);
    settle(t, &p);
    files = witness_row(t, p.pid)[METRIC_FILES];
    anon = witness_row(t, p.pid)[METRIC_ANON_INODES];
    /* A count that moves by one brings them back at once, since they are old. */
    assert_int_equal(puppet_does(&p, 'k'), 0);
    assert_int_not_equal(sweeps_until(t, &p, METRIC_FILES, files + 1, 10), -1);
    settle(t, &p);
    /* One kind for another, no count moves. */
    assert_int_equal(puppet_does(&p, 'x'), 0);
    assert_int_not_equal(sweeps_until(t, &p, METRIC_ANON_INODES, anon + 1, MOST), -1);
    assert_int_equal(witness_row(t, p.pid)[METRIC_FILES], files);
    assert_int_equal(witness_row(t, p.pid)[METRIC_FD_KINDS_ERR], 0);
    witness_close(t);
    puppet_end(&p);
}

/* Every connection is closed and made anew between two sweeps: the count of descriptors never moves, and neither may theirs. */
static void test_connections_replaced(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();

    (void)state;
    assert_int_equal(puppet_does(&p, 'c'), 0);
    witness_add_pid(t, p.pid);
    for (int i = 0; i < 2 * MOST; i++) {
        const int64_t *v;

        if (i < 5 || i > 40)
            assert_int_equal(puppet_does(&p, 'c'), 0);
        witness_sweep(t);
        v = witness_row(t, p.pid);
        assert_int_equal(v[METRIC_SOCKETS], 3);
        assert_int_equal(v[METRIC_CONNECTIONS], 2);
        assert_int_equal(v[METRIC_TCP_LISTEN], 1);
        assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 0);
    }
    witness_close(t);
    puppet_end(&p);
}

/* The list of sockets is kept, their states are not: they change while the process sleeps. */
static void test_states_of_kept_sockets(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int sweeps = 0;

    (void)state;
    assert_int_equal(puppet_does(&p, 'c'), 0);
    witness_add_pid(t, p.pid);
    settle(t, &p);
    assert_int_equal(witness_row(t, p.pid)[METRIC_TCP_ESTABLISHED], 2);
    assert_int_equal(puppet_does(&p, 'h'), 0);
    do
        witness_sweep(t);
    while (witness_row(t, p.pid)[METRIC_TCP_CLOSE_WAIT] != 1 && ++sweeps < 20);
    assert_true(sweeps < 20); /* every 10th; once more, should the peer's end not have arrived yet */
    assert_int_equal(witness_row(t, p.pid)[METRIC_TCP_ESTABLISHED], 0);
    assert_int_equal(witness_row(t, p.pid)[METRIC_CONNECTIONS], 2);
    witness_close(t);
    puppet_end(&p);
}

static void test_threads(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();

    (void)state;
    witness_add_pid(t, p.pid);
    settle(t, &p);
    for (int i = 2; i < 6; i++) {
        assert_int_equal(puppet_does(&p, 'i'), 0);
        assert_int_not_equal(sweeps_until(t, &p, METRIC_THREADS, i, 6), -1);
    }
    /* Started, then nothing of the process runs any more: what is owed is still read. */
    assert_int_equal(puppet_does(&p, 'i'), 0);
    for (int i = 0; i < 7; i++)
        witness_sweep(t);
    assert_int_equal(witness_row(t, p.pid)[METRIC_THREADS], 6);
    witness_close(t);
    puppet_end(&p);
}

/* ---- the block of lists (P1, P2) ----------------------------------------------------------------------------------- */

#define SPANS 64

static void append(struct socketpool *p, size_t owner, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(vec_append(&p->items, &(struct fd_socket){ .inode = owner * 1000 + i, .fd = (int32_t)i }), 0);
}

static void check_spans(const struct socketpool *p, const struct socketspan *spans)
{
    size_t room = p->garbage;

    for (size_t o = 0; o < SPANS; o++) {
        const struct fd_socket *list = socketpool_list(p, &spans[o]);

        room += spans[o].cap;
        assert_true(spans[o].n <= spans[o].cap && spans[o].at + spans[o].cap <= p->items.n);
        for (size_t i = 0; i < spans[o].n; i++)
            assert_int_equal(list[i].inode, o * 1000 + i);
    }
    assert_int_equal(room, p->items.n);
}

static void test_pool(void **state)
{
    struct socketspan spans[SPANS] = { 0 };
    struct socketpool p;
    uint32_t x = 1;
    int packed = 0;

    (void)state;
    socketpool_init(&p, 1 << 20);
    for (int round = 0; round < 20000; round++) {
        size_t o, from = p.items.n;

        x = x * 1664525u + 1013904223u;
        o = (x >> 8) % SPANS;
        if (x >> 28 == 0) {
            socketpool_drop(&p, &spans[o]);
        } else {
            append(&p, o, (x >> 16) % 200);
            socketpool_take(&p, &spans[o], from);
        }
        if (socketpool_pack(&p)) {
            for (size_t i = 0; i < SPANS; i++)
                socketpool_move(&p, &spans[i]);
            packed++;
        }
        if (round % 50 == 0)
            check_spans(&p, spans);
    }
    check_spans(&p, spans);
    assert_true(packed > 10);
    assert_true(p.items.cap < 65536);
    socketpool_release(&p);
}

HARNESS_MAIN(CASE(test_kinds_come_back), CASE(test_connections_replaced), CASE(test_states_of_kept_sockets), CASE(test_threads),
             CASE(test_pool))

/* For the sampler's tests: a sink that remembers what it was told, and processes that do what they are told. */
#ifndef LT_SOURCE_TEST_WITNESS_H
#define LT_SOURCE_TEST_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/source.h"

#define WITNESS_LIVES 4096
#define WITNESS_NOTES 64

struct witness_life {
    struct life_info info;
    struct life_end end;
    int ends;                     /* times it was ended */
    int64_t last[METRIC_N];
    int64_t told_mono_ns;         /* when its end was told */
};

struct witness {
    struct watch *w;
    struct sweep sweep;
    size_t nlives, nnotes, nhistogram;
    struct witness_life *lives;   /* life id i is lives[i - 1] */
    struct { char target[32], kind[16], text[400]; } notes[WITNESS_NOTES];
    char paths[4096];             /* "key count\n" of all histogram rows */
};

/* All of these fail the case when something goes wrong. */
struct witness *witness_open(const struct watch_config *config); /* NULL: the defaults */
void witness_add(struct witness *t, const char *selector);        /* target name and id: "t1" and 1, and so on */
void witness_add_pid(struct witness *t, pid_t pid);
void witness_sweep(struct witness *t);
void witness_events(struct witness *t);
void witness_close(struct witness *t);                            /* checks that every life was ended once; frees */
void witness_stop(struct witness *t);                             /* closes the sampler, keeps what was told (witness_close after) */

const int64_t *witness_row(const struct witness *t, pid_t pid);   /* of the last sweep; NULL: none */
const int64_t *witness_target(const struct witness *t, int64_t target_id);
struct witness_life *witness_life(const struct witness *t, pid_t pid); /* the last one with that number; NULL: none */
bool witness_noted(const struct witness *t, const char *kind);
int witness_notes(const struct witness *t, const char *kind);
/* Polls the event descriptor until the process's life has ended; false after 20 s. */
bool witness_sees_end(struct witness *t, pid_t pid);
struct watch_stats witness_stats(const struct witness *t);

/* A process that is told what to do by single letters, and answers with a number:
 *   f  fork a child that sleeps: its pid            z  fork a child that exits at once, not waited for: its pid
 *   t  the same from a second thread, which ends    d  fork twice; the one between exits and is waited for: the pid
 *   o  open 30 files: how many                      s  make 5 sockets: how many
 *   w  wait for all children that have ended: how many
 *   F  fork 2,000 children that exit with 3, one after the other, each waited for: how many
 *   m  touch 8 MiB: bytes                           T  end the first thread while a second stays: 0
 *   S  as f, the child leads a new session          D  as d, in a new session
 *   l  listen on a TCP port of 127.0.0.1 with SO_REUSEPORT: the port (p: on the one whose two bytes follow)
 *   L  fork two children that listen on one port, each with a socket of its own: the port
 *   i  start a thread that stays: 0                 k  open a file: 0
 *   x  close that file and open an eventfd: 0
 *   c  connect to itself by TCP, the two ends of the connection before closed first: 0
 *   h  shut the accepted end down for writing: 0    q  exit with 7 (no answer)
 * It ends when the test does. */
struct puppet { pid_t pid; int to, from; };
struct puppet puppet_start(void);
struct puppet puppet_start_in(int (*enter)(void *ctx), void *ctx); /* enter runs in it first; non-zero: ends with that */
int64_t puppet_does(const struct puppet *p, char what);
void puppet_tell(const struct puppet *p, char what);       /* without waiting for the answer */
int64_t puppet_answer(const struct puppet *p);             /* -1: it ended */
int puppet_end(struct puppet *p);                          /* kills and waits: the wait status */
int puppet_wait(struct puppet *p);                         /* waits only */
_Noreturn void puppet_run(int in, int out);                /* the process's own part */

void kill_and_see_gone(pid_t pid);                         /* of a process that is not our child: until it has ended */

#endif

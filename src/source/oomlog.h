/* Whom the kernel killed for memory, as its log names them (/dev/kmsg; needs CAP_SYSLOG where dmesg is restricted).
 * The pids in it are those of the initial pid namespace. */
#ifndef LT_SOURCE_OOMLOG_H
#define LT_SOURCE_OOMLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OOMLOG_KEPT 64

struct oomlog {
    int fd;                   /* -1: cannot be read */
    bool told;                /* it has named a kill: so it is a real log */
    size_t next;
    struct { int32_t pid; int64_t read_ns; } kills[OOMLOG_KEPT];
};

void oomlog_open(struct oomlog *o, const char *path); /* from now on: what was logged before is skipped */
void oomlog_close(struct oomlog *o);
void oomlog_read(struct oomlog *o);                   /* takes in what is new; never waits */
/* Whether it named pid within the last minute; asked once: a second time it is false. */
bool oomlog_took(struct oomlog *o, int32_t pid);

/* The pid in a line "...: Killed process 4711 (name) ...", 0 in any other. */
int32_t oomlog_parse(const char *text, size_t len);

#endif

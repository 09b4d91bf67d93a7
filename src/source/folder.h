/* Entries of an open folder by getdents64, without allocation. (readdir(3) allocates, and hides nothing we need.) */
#ifndef LT_SOURCE_FOLDER_H
#define LT_SOURCE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#define FOLDER_BUFFER 32768

struct folder {
    int fd;
    long got, at;                 /* bytes in buf, and how far they are spent */
    _Alignas(8) char buf[FOLDER_BUFFER];
};

struct folder_entry {
    uint64_t ino;
    const char *name;             /* until the next call */
};

void folder_init(struct folder *f, int fd); /* borrows fd; starts where it stands */
int folder_rewind(struct folder *f);        /* 0 or a negative errno */
/* The next entry, "." and ".." among them: 1, 0 at the end, or a negative errno. */
int folder_next(struct folder *f, struct folder_entry *ret);

/* A name that is a decimal number of 1 to 9 digits without leading zero: it, else 0. */
int32_t folder_pid(const char *name);

#endif

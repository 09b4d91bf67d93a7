/* How fast a curve CSV is read: writes one of SIZE MB (default 400) as a sampling shell loop would, reads it, prints MB/s of CPU
 * time and the memory taken. The file is removed at once after opening. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "source/csv.h"

struct sum {
    uint64_t rows;
    int64_t rss;
};

static int add(void *ctx, const struct csv_row *row)
{
    struct sum *s = ctx;

    s->rows++;
    s->rss += row->curve.v[METRIC_RSS];
    return 0;
}

static int write_curve(int fd, size_t bytes)
{
    char line[128];
    struct buf b;
    int r = 0;

    buf_init(&b, 1 << 20);
    for (size_t done = 0, i = 0; done < bytes && r == 0; i++) {
        size_t n = str_fmt(line, sizeof line, "%zu,%zu,%zu,%zu,%zu\n", 1700000000 + i * 30, 300000 + i % 70000, 40 + i % 9, 12 + i % 3, i % 5);
        done += n;
        r = buf_append(&b, line, n);
        if (r == 0 && (b.len > (1 << 20) - 256 || done >= bytes)) {
            r = fd_write_all(fd, b.p, b.len);
            buf_clear(&b);
        }
    }
    buf_release(&b);
    return r;
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/lowtide-bench-csv-XXXXXX";
    int64_t mb = 400;
    struct sum sum = { 0 };
    struct csv_report rep;
    struct err err = { 0 };
    struct rusage ru;

    if (argc > 1 && (units_int(argv[1], strlen(argv[1]), &mb) || mb < 1))
        return fprintf(stderr, "usage: %s [SIZE_MB]\n", argv[0]), 2;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return perror(path), 3;
    unlink(path);
    if (write_curve(fd, (size_t)mb << 20) || lseek(fd, 0, SEEK_SET) < 0)
        return fprintf(stderr, "cannot write %s\n", path), 3;
    int64_t from = clock_cpu_ns();
    int r = csv_read_fd(fd, CSV_CURVE, NULL, add, &sum, &rep, &err);
    double s = (double)(clock_cpu_ns() - from) / 1e9;
    if (r || rep.bad || rep.rows != sum.rows)
        return fprintf(stderr, "reading failed: %s\n", err.text), 3;
    getrusage(RUSAGE_SELF, &ru);
    printf("curve CSV: %.0f MB, %llu rows, %.2f s CPU, %.0f MB/s, %.0f ns a row, peak memory %ld kB (sum %lld)\n", (double)rep.bytes / 1e6,
           (unsigned long long)rep.rows, s, (double)rep.bytes / 1e6 / s, s * 1e9 / (double)rep.rows, ru.ru_maxrss, (long long)sum.rss);
    close(fd);
    return 0;
}

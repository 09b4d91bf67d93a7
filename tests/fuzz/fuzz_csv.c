/* csv_read_fd: every good row keeps the promises of csv.h, every line is either passed on, counted as bad, empty or the header,
 * and line numbers only grow. The first byte says which kind of file. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "fuzz/fuzz.h"
#include "source/csv.h"

struct watch {
    enum csv_kind kind;
    uint64_t rows, last_line;
};

static void check_text(const char *s)
{
    for (; *s; s++)
        FUZZ_PROMISE((unsigned char)*s >= ' ' && *s != 127);
}

static int check_row(void *ctx, const struct csv_row *row)
{
    struct watch *w = ctx;

    FUZZ_PROMISE(row->line > w->last_line);
    w->last_line = row->line;
    w->rows++;
    if (w->kind == CSV_CURVE) {
        FUZZ_PROMISE(row->curve.ts_ns >= 0 && row->curve.pid >= 0);
        FUZZ_PROMISE(row->curve.start_ns == CLOCK_INVALID || row->curve.start_ns >= 0);
        for (int i = 0; i < METRIC_N; i++)
            FUZZ_PROMISE(row->curve.v[i] == METRIC_NA || (row->curve.v[i] >= 0 && row->curve.v[i] <= INT64_C(1) << 62));
    } else if (w->kind == CSV_REQUESTS) {
        FUZZ_PROMISE(row->request.ts_ns >= 0 && row->request.pid >= 0 && row->request.n >= 0);
        FUZZ_PROMISE(row->request.stream >= -1 && row->request.stream <= 1);
        FUZZ_PROMISE(*row->request.endpoint && *row->request.outcome);
        check_text(row->request.endpoint);
        check_text(row->request.version);
    } else {
        FUZZ_PROMISE(row->event.ts_ns >= 0 && *row->event.kind);
        check_text(row->event.kind);
        check_text(row->event.text);
    }
    return 0;
}

static uint64_t line_ends(const uint8_t *data, size_t size)
{
    uint64_t n = 0;

    for (size_t i = 0; i < size; i++)
        n += data[i] == '\n';
    return n;
}

static void check_report(const struct csv_report *rep, const struct watch *w, int r, const uint8_t *data, size_t size)
{
    FUZZ_PROMISE(r == 0 || r == LT_EPARSE);
    FUZZ_PROMISE(rep->rows == w->rows && rep->bytes == size);
    FUZZ_PROMISE(rep->nbad == MIN(rep->bad, (uint64_t)CSV_BAD_KEPT));
    FUZZ_PROMISE(rep->rows + rep->bad <= rep->lines + 1);
    for (size_t i = 0; i < rep->nbad; i++)
        FUZZ_PROMISE(rep->bad_lines[i].line > 0 && rep->bad_lines[i].why[0] &&
                     (i == 0 || rep->bad_lines[i].line > rep->bad_lines[i - 1].line));
    if (r == 0)
        FUZZ_PROMISE(rep->lines == line_ends(data, size) + (size > 0 && data[size - 1] != '\n' && rep->lines > line_ends(data, size)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct watch w = { 0 };
    struct csv_report rep;
    struct csv_options options = { 0 };

    if (size < 1)
        return 0;
    w.kind = (enum csv_kind)(data[0] % 3);
    options.skip_unknown = data[0] & 0x40;
    data++;
    size--;
    int fd = memfd_create("csv", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, data, size) || lseek(fd, 0, SEEK_SET))
        return 0;
    int r = csv_read_fd(fd, w.kind, &options, check_row, &w, &rep, NULL);
    close(fd);
    check_report(&rep, &w, r, data, size);
    return 0;
}

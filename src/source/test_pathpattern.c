/* What is made up for each file becomes one pattern; words stay. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/pathpattern.h"

static const char *pattern(const char *path)
{
    static char out[128];

    size_t n = path_pattern(path, strlen(path), out, sizeof out);

    assert_int_equal(n, strlen(out));
    return out;
}

static void test_rules(void **state)
{
    static const char *const cases[][2] = {
        { "/tmp/tmpk3jd8f2a", "/tmp/tmp#" }, { "/tmp/tmpabcdefgh.wav", "/tmp/tmp#.wav" }, { "/tmp/tmp_b_d_f_h (deleted)", "/tmp/tmp# (deleted)" },
        { "/var/tmp/up_k3jd8f2a.wav", "/var/tmp/up_#.wav" }, { "/tmp/up_kq_d8f2a.wav", "/tmp/up_#.wav" }, { "/tmp/sess.aBcDeF", "/tmp/sess.#" },
        { "/tmp/sess-x9QweR", "/tmp/sess-#" }, { "/tmp/tmp.X8fKq2Lm1z", "/tmp/tmp.#" }, { "/tmp/12345", "/tmp/#" },
        { "/srv/app/tmp/a1b2c3/part-00017.bin", "/srv/app/tmp/#/part-#.bin" }, { "/dev/shm/psm_4f8a21bc", "/dev/shm/psm_#" },
        { "/data/550e8400-e29b-41d4-a716-446655440000/x", "/data/#/x" }, { "/data/550E8400-E29B-41D4-A716-446655440000", "/data/#" },
        { "/data/d41d8cd98f00b204e9800998ecf8427e.json", "/data/#.json" },
        /* words */
        { "/tmp/job-123/x7.wav", "/tmp/job-#/x#.wav" }, { "/tmp/report.txt", "/tmp/report.txt" }, { "/tmp/MyFile", "/tmp/MyFile" },
        { "/tmp/worker_1.log", "/tmp/worker_#.log" }, { "/tmp/UPLOAD", "/tmp/UPLOAD" }, { "/tmp/output.mp3", "/tmp/output.mp#" },
        { "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x#_#-linux-gnu/libc.so.#" }, { "/opt/log4j2/tmpk3jd8f2a", "/opt/log#j#/tmpk#jd#f#a" },
        { "/srv/facade/decade", "/srv/facade/decade" }, { "/data/deadbeef", "/data/deadbeef" }, { "/tmpk3jd8f2a", "/tmpk#jd#f#a" },
        { "", "" }, { "/", "/" }, { "//tmp//a", "//tmp//a" }, { "anon_inode:[eventpoll]", "anon_inode:[eventpoll]" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(pattern(cases[i][0]), cases[i][1]);
}

/* Names as they are really made: nearly all fall into one pattern. */
static void test_mkstemp(void **state)
{
    int same = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        char name[256], path[300];
        const char *base;
        int fd;

        str_fmt(name, sizeof name, "%s/audio-XXXXXX", harness_tmpdir());
        fd = mkstemp(name);
        assert_true(fd >= 0);
        close(fd);
        unlink(name);
        base = strrchr(name, '/');
        str_fmt(path, sizeof path, "/tmp%s", base);
        same += str_eq(pattern(path), "/tmp/audio-#");
    }
    assert_true(same > 850);
}

static void test_bounds(void **state)
{
    char out[8];

    (void)state;
    assert_int_equal(path_pattern("/tmp/abcdefgh", 13, out, sizeof out), 7);
    assert_string_equal(out, "/tmp/ab");
    assert_int_equal(path_pattern("/tmp/x", 6, out, 1), 0);
    assert_string_equal(out, "");
    assert_int_equal(path_pattern("/tmp/tmpk3jd8f2aZZ", 16, out, sizeof out), 7); /* not a byte behind its end */
}

HARNESS_MAIN(CASE(test_rules), CASE(test_mkstemp), CASE(test_bounds))

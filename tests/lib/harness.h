/* cmocka cases that also check that descriptors, children, threads and live heap are back where they began.
 *
 *     static void test_roundtrip(void **state) { ... assert_int_equal(...); }
 *     HARNESS_MAIN(CASE(test_roundtrip), CASE(test_other))
 *
 * A case that leaves anything behind fails with the list of what it left.
 */
#ifndef LT_TESTS_HARNESS_H
#define LT_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct harness_case {
    const char *name;
    void (*fn)(void **state);
};

#define CASE(fn) { #fn, fn }
#define HARNESS_MAIN(...) \
    int main(int argc, char **argv) \
    { \
        static const struct harness_case cases[] = { __VA_ARGS__ }; \
        return harness_main(argc, argv, cases, sizeof cases / sizeof cases[0]); \
    }

/* Runs all cases, or those whose name contains argv[1]; prints cmocka's lines, then
 * "harness: N passed, N failed, N skipped"; 0 when none failed and there was one to run. */
int harness_main(int argc, char **argv, const struct harness_case *cases, size_t n);

/* Calls fn(ctx) again and again, failing its 1st, 2nd, 3rd ... allocation, until it ends without having hit the armed
 * failure. Each time: fn must return 0 or LT_ENOMEM, and leave no live block. Fails the case otherwise. */
void harness_sweep_allocs(int (*fn)(void *ctx), void *ctx);

/* How long run_case() waits for what goes by itself, like a joined thread's entry in /proc; 5 s unless set. */
extern int64_t harness_settle_ns;

/* A fresh folder under TMPDIR, removed with its content at the end of the case. */
const char *harness_tmpdir(void);

#endif

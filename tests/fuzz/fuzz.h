/* What a harness defines: libFuzzer and replay.c call it. It takes any bytes, and ends the program when a promise of
 * the parser is broken (FUZZ_PROMISE) or a sanitizer finds something. Returns 0. */
#ifndef LT_TESTS_FUZZ_H
#define LT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((noreturn)) static inline void fuzz_broken(const char *promise, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
    __builtin_trap();
}

#define FUZZ_PROMISE(condition) \
    do { \
        if (!(condition)) \
            fuzz_broken(#condition, __FILE__, __LINE__); \
    } while (0)

#endif

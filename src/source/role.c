#include "source/role.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define WORDS_KEPT 2
#define KEY_LENGTH 20        /* a word this long with letters and digits mixed may be a key */

static const char *const interpreters[] = {
    "python", "python2", "python3", "node", "ruby", "perl", "php", "sh", "bash", "dash", "java", "uv", "env", "bun", "deno",
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* "python3.11" is python3 too. */
static bool is_interpreter(const char *program)
{
    size_t n = strcspn(program, ".");

    for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++)
        if (strlen(interpreters[i]) == n && !memcmp(interpreters[i], program, n))
            return true;
    return false;
}

/* Long, letters and digits mixed. */
static bool may_be_key(const char *s, size_t len)
{
    bool letter = false, digit = false;

    for (size_t i = 0; i < len; i++) {
        letter |= (s[i] | 32) >= 'a' && (s[i] | 32) <= 'z';
        digit |= s[i] >= '0' && s[i] <= '9';
    }
    return len >= KEY_LENGTH && letter && digit;
}

/* Paths, modules and addresses are long and mixed, too, but not each part of them; tokens with dots (JWT) or colons are. An
 * argument with blanks in it ("Authorization: Bearer ...") is no plain word. */
static bool may_be_secret(const char *word, size_t len)
{
    if (memchr(word, '=', len) || memchr(word, '@', len) || memchr(word, ' ', len) || memmem(word, len, "://", 3))
        return true;
    for (size_t i = 0, n; i < len; i += n + 1) {
        for (n = 0; i + n < len && !strchr("/.:", word[i + n]); n++)
            ;
        if (may_be_key(word + i, n))
            return true;
    }
    return false;
}

static void add_word(char out[ROLE_MAX], const char *word, size_t len)
{
    size_t at = strlen(out);

    str_fmt(out + at, ROLE_MAX - at, "%s%.*s", at ? " " : "", (int)MIN(len, (size_t)ROLE_MAX), word);
}

/* A title like "gunicorn: worker [app]" or "nginx: master process /usr/sbin/nginx -g daemon off;". */
static void add_title(char out[ROLE_MAX], const char *title)
{
    while (*title) {
        size_t len = strcspn(title, " ");

        if (len && (may_be_secret(title, len) || *title == '-'))
            return;
        if (len)
            add_word(out, title, len);
        title += len + (title[len] == ' ');
    }
}

/* The argument behind p, or NULL; all lie in cmdline[0..end). */
static const char *next_arg(const char *p, const char *end)
{
    p += strnlen(p, (size_t)(end - p)) + 1;
    return p < end && *p ? p : NULL;
}

static void add_arguments(char out[ROLE_MAX], const char *arg, const char *end)
{
    bool skip_value = false, program = is_interpreter(base_name(arg));
    int kept = 0;

    add_word(out, base_name(arg), strlen(base_name(arg)));
    while (kept < WORDS_KEPT && (arg = next_arg(arg, end))) {
        size_t len = strlen(arg);

        if (*arg == '-') {
            /* What follows "-x" or "--x" may be its value. -m names a module; code behind -c says nothing in short. */
            skip_value = !strchr(arg, '=') && !(program && str_eq(arg, "-m"));
            if (program && str_eq(arg, "-c"))
                return;
            if (program && len == 2 && strchr("uBIsSEO", arg[1]))
                skip_value = false;
            continue;
        }
        if (!skip_value && !may_be_secret(arg, len)) {
            add_word(out, program ? base_name(arg) : arg, len - (program ? (size_t)(base_name(arg) - arg) : 0));
            kept += !program;
            program = false;
        }
        skip_value = false;
    }
}

void role_of(const char *cmdline, size_t len, const char *comm, char out[ROLE_MAX])
{
    const char *end = cmdline + len;
    size_t first = strnlen(cmdline, len);

    out[0] = '\0';
    if (!first)
        str_copy(out, ROLE_MAX, comm);
    else if (memchr(cmdline, ' ', first) && !next_arg(cmdline, end))
        add_title(out, cmdline);
    else
        add_arguments(out, cmdline, end);
    if (!*out)
        str_copy(out, ROLE_MAX, comm);
    str_printable(out);
}

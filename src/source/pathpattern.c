#include "source/pathpattern.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

#define UUID_LENGTH 36
#define HEX_MIN 8
#define PYTHON_RANDOM 8

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_alnum(char c)
{
    return is_digit(c) || is_lower(c) || is_upper(c);
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static size_t word_length(struct slice s)
{
    size_t n = 0;

    while (n < s.len && is_alnum(s.p[n]))
        n++;
    return n;
}

static bool is_uuid(struct slice s)
{
    if (s.len < UUID_LENGTH || (s.len > UUID_LENGTH && is_alnum(s.p[UUID_LENGTH])))
        return false;
    for (size_t i = 0; i < UUID_LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? s.p[i] != '-' : !is_hex(s.p[i]))
            return false;
    }
    return true;
}

static bool is_hex_word(struct slice w)
{
    bool digit = false, lower = false, upper = false;

    for (size_t i = 0; i < w.len; i++) {
        if (!is_hex(w.p[i]))
            return false;
        digit |= is_digit(w.p[i]);
        lower |= is_lower(w.p[i]);
        upper |= is_upper(w.p[i]);
    }
    return w.len >= HEX_MIN && digit && lower != upper;
}

static bool letter_follows_digit(struct slice s)
{
    for (size_t i = 1; i < s.len; i++)
        if (is_digit(s.p[i - 1]) && is_alnum(s.p[i]) && !is_digit(s.p[i]))
            return true;
    return false;
}

static size_t changes(struct slice w)
{
    size_t n = 0;

    for (size_t i = 1; i < w.len; i++)
        n += is_digit(w.p[i]) != is_digit(w.p[i - 1]);
    return n;
}

/* A capital within the word that two small letters do not follow; in a word all of capitals there is none. */
static bool odd_capital(struct slice w)
{
    bool odd = false, lower = false;

    for (size_t i = 0; i < w.len; i++) {
        lower |= is_lower(w.p[i]);
        odd |= i && is_upper(w.p[i]) && (i + 2 >= w.len || !is_lower(w.p[i + 1]) || !is_lower(w.p[i + 2]));
    }
    return odd && lower;
}

static bool is_made_up(struct slice w)
{
    if (w.len >= 6 && changes(w) >= 2)
        return true;
    return (w.len == 6 || w.len == 8 || w.len == 10) && (letter_follows_digit(w) || odd_capital(w)); /* R5 */
}

/* PYTHON_RANDOM characters of a-z 0-9 _ at s, behind which none of them follows. */
static bool is_python_random(struct slice s)
{
    size_t n = 0;

    while (n < s.len && (is_lower(s.p[n]) || is_digit(s.p[n]) || s.p[n] == '_'))
        n++;
    return n == PYTHON_RANDOM && (n == s.len || !is_alnum(s.p[n]));
}

/* How much of s, at the begin of a word, is made up for this file; 0: nothing. */
static size_t made_up(struct slice s, bool temp)
{
    struct slice word = { s.p, word_length(s) };

    if (is_uuid(s))
        return UUID_LENGTH; /* R1 */
    if (temp && is_python_random(s) && letter_follows_digit((struct slice){ s.p, PYTHON_RANDOM }))
        return PYTHON_RANDOM; /* R4 */
    return is_hex_word(word) || (temp && is_made_up(word)) ? word.len : 0;
}

static bool is_temp_name(struct slice name)
{
    return slice_eq(name, "tmp") || slice_eq(name, "temp") || slice_eq(name, "shm") || slice_eq(name, "run");
}

struct pattern {
    char *out;
    size_t n, size;
};

static void put(struct pattern *p, char c)
{
    if (p->n < p->size - 1)
        p->out[p->n++] = c;
}

/* A word in which nothing is made up but its figures (R2). */
static void put_word(struct pattern *p, struct slice w)
{
    for (size_t i = 0; i < w.len; i++) {
        if (!is_digit(w.p[i]))
            put(p, w.p[i]);
        else if (!i || !is_digit(w.p[i - 1]))
            put(p, '#');
    }
}

static void put_name(struct pattern *p, struct slice rest, bool temp)
{
    if (temp && rest.len > 3 && !memcmp(rest.p, "tmp", 3) && is_python_random((struct slice){ rest.p + 3, rest.len - 3 })) { /* R3 */
        for (int i = 0; i < 4; i++)
            put(p, "tmp#"[i]);
        rest = (struct slice){ rest.p + 3 + PYTHON_RANDOM, rest.len - 3 - PYTHON_RANDOM };
    }
    while (rest.len) {
        size_t n = made_up(rest, temp), word = n ? n : word_length(rest);

        if (n)
            put(p, '#');
        else if (word)
            put_word(p, (struct slice){ rest.p, word });
        else
            put(p, rest.p[0]);
        word = word ? word : 1;
        rest = (struct slice){ rest.p + word, rest.len - word };
    }
}

size_t path_pattern(const char *path, size_t len, char *out, size_t size)
{
    struct pattern p = { out, 0, size };
    struct slice rest = { path, len }, name;
    bool temp = false;

    for (bool first = true; slice_next(&rest, '/', &name); first = false) {
        if (!first)
            put(&p, '/');
        put_name(&p, name, temp);
        temp |= is_temp_name(name);
    }
    out[p.n] = '\0';
    return p.n;
}

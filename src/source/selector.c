#include "source/selector.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#define FORMS "pid:N, port:N, cmd:REGEX, unit:NAME, cgroup:PATH or pidfile:PATH"

static const struct { const char *prefix; enum selector_kind kind; } kinds[] = {
    { "pid:", SELECT_PID }, { "port:", SELECT_PORT }, { "cmd:", SELECT_CMD },
    { "unit:", SELECT_UNIT }, { "cgroup:", SELECT_CGROUP }, { "pidfile:", SELECT_PIDFILE },
};

static int parse_number(const char *text, const char *digits, int64_t max, int64_t *ret, struct err *err)
{
    if (units_int(digits, strlen(digits), ret) < 0 || *ret < 1 || *ret > max)
        return err_set(err, LT_EUSAGE, "selector %.80s: not a number from 1 to %lld; give " FORMS, text, (long long)max);
    return 0;
}

static int parse_regex(struct selector *s, struct err *err)
{
    int r = regcomp(&s->regex, s->name, REG_EXTENDED | REG_NOSUB);
    char why[128];

    if (r == 0)
        return 0;
    if (r == REG_ESPACE)
        return err_set(err, LT_ENOMEM, "selector %.80s: out of memory", s->text);
    regerror(r, &s->regex, why, sizeof why);
    return err_set(err, LT_EUSAGE, "selector %.80s: %s; give a POSIX extended regular expression", s->text, why);
}

static int parse_value(struct selector *s, struct err *err)
{
    int64_t number;
    int r;

    if (!*s->name)
        return err_set(err, LT_EUSAGE, "selector %.80s: nothing behind the colon; give " FORMS, s->text);
    if (s->kind == SELECT_CMD)
        return parse_regex(s, err);
    if (s->kind == SELECT_PID) {
        r = parse_number(s->text, s->name, INT32_MAX, &number, err);
        s->pid = r < 0 ? 0 : (int32_t)number;
        return r;
    }
    if (s->kind == SELECT_PORT) {
        r = parse_number(s->text, s->name, UINT16_MAX, &number, err);
        s->port = r < 0 ? 0 : (uint16_t)number;
        return r;
    }
    if (s->kind == SELECT_UNIT && strchr(s->name, '/'))
        return err_set(err, LT_EUSAGE, "selector %.80s: a unit has no / in its name; for a path give cgroup:PATH", s->text);
    return 0;
}

int selector_parse(struct selector *ret, const char *text, struct err *err)
{
    struct selector s = { .kind = SELECT_PID };
    size_t prefix = 0;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_starts(text, kinds[i].prefix)) {
            s.kind = kinds[i].kind;
            prefix = strlen(kinds[i].prefix);
        }
    if (!prefix && (!*text || strspn(text, "0123456789") != strlen(text)))
        return err_set(err, LT_EUSAGE, "selector %.80s: not known; give " FORMS, text);
    s.text = mem_strdup(text);
    if (!s.text)
        return err_set(err, LT_ENOMEM, "selector %.80s: out of memory", text);
    s.name = s.text + prefix;
    r = parse_value(&s, err);
    if (r < 0)
        mem_free(s.text);
    else
        *ret = s;
    return r;
}

void selector_release(struct selector *s)
{
    if (s->text && s->kind == SELECT_CMD)
        regfree(&s->regex);
    mem_free(s->text);
    s->text = NULL;
    s->name = NULL;
}

bool selector_matches(const struct selector *s, char *cmdline, size_t len)
{
    while (len && !cmdline[len - 1])
        len--;
    cmdline[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if (!cmdline[i])
            cmdline[i] = ' ';
    return s->kind == SELECT_CMD && len && regexec(&s->regex, cmdline, 0, NULL, 0) == 0;
}

int selector_check(const char *text, struct err *err)
{
    struct selector s;
    int r = selector_parse(&s, text, err);

    if (r == 0)
        selector_release(&s);
    return r;
}

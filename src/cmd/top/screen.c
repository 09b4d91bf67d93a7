/* The terminal while top has it: alternate screen, no echo, keys one by one. It is given back on every way out: q, a stop
 * signal, Ctrl-Z (taken again when continued), and a crash. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cmd/top/top.h"

#define ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE "\033[?25h\033[?1049l"

static struct termios before;
static volatile sig_atomic_t active;
static bool keys;                   /* standard input is the terminal */
static int signals_fd = -1;
static sigset_t mask_before;
static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

static void enter(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    fd_write_all(STDOUT_FILENO, ENTER, strlen(ENTER));
    active = 1;
}

/* Async-signal-safe. */
static void leave(void)
{
    if (!active)
        return;
    active = 0;
    ssize_t n = write(STDOUT_FILENO, LEAVE, sizeof LEAVE - 1);
    (void)n; /* the terminal may be gone */
    if (keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_fatal(int signo)
{
    leave();
    raise(signo); /* SA_RESETHAND: now as usual */
}

int screen_open(struct err *err)
{
    sigset_t set;
    struct sigaction action = { .sa_handler = on_fatal, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };
    keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &before);
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGCONT);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGQUIT);
    sigprocmask(SIG_BLOCK, &set, &mask_before);
    signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_fd < 0) {
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
        return cmd_errno(err, errno, "the terminal's signals", "try again");
    }
    for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
        sigaction(fatal[i], &action, NULL);
    enter();
    return 0;
}

void screen_close(void)
{
    leave();
    for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
        signal(fatal[i], SIG_DFL);
    signals_fd = fd_close(signals_fd);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

int screen_show(const struct buf *frame)
{
    struct buf out;
    buf_init(&out, frame->max + 65536);
    buf_puts(&out, "\033[H");
    for (const char *p = frame->p; *p;) {
        size_t n = strcspn(p, "\n");
        buf_append(&out, p, n);
        buf_puts(&out, p[n] && p[n + 1] ? "\033[K\r\n" : "\033[K");
        p += n + (p[n] != '\0');
    }
    buf_puts(&out, "\033[J");
    int r = fd_write_all(STDOUT_FILENO, out.p, out.len) ? LT_EIO : 0;
    buf_release(&out);
    return r;
}

static enum top_key on_signal(void)
{
    struct signalfd_siginfo info;
    enum top_key key = KEY_NONE;
    while (read(signals_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGQUIT)
            return KEY_QUIT;
        if (info.ssi_signo == SIGTSTP) {
            leave();
            kill(getpid(), SIGSTOP);
        }
        if (!active)
            enter(); /* continued */
        key = KEY_REDRAW;
    }
    return key;
}

static enum top_key on_input(void)
{
    static const struct { const char *bytes; enum top_key key; } known[] = {
        { "q", KEY_QUIT }, { "Q", KEY_QUIT }, { "s", KEY_SORT }, { "k", KEY_UP }, { "j", KEY_DOWN },
        { "\033[A", KEY_UP }, { "\033[B", KEY_DOWN }, { "\033OA", KEY_UP }, { "\033OB", KEY_DOWN },
        { "\033[5~", KEY_PAGE_UP }, { "\033[6~", KEY_PAGE_DOWN }, { "\014", KEY_REDRAW },
    };
    char in[16];
    ssize_t n = read(STDIN_FILENO, in, sizeof in);
    if (n <= 0)
        return n < 0 && errno == EINTR ? KEY_REDRAW : KEY_QUIT; /* the terminal is gone */
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if ((size_t)n >= strlen(known[i].bytes) && !memcmp(in, known[i].bytes, strlen(known[i].bytes)))
            return known[i].key;
    return KEY_REDRAW;
}

enum top_key screen_wait(int64_t until_mono_ns)
{
    struct pollfd p[] = {
        { .fd = cmd_signal_fd(), .events = POLLIN },
        { .fd = signals_fd, .events = POLLIN },
        { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN },
    };
    for (;;) {
        int64_t left = MAX(until_mono_ns - clock_mono_ns(), (int64_t)0);
        struct timespec ts = { left / NS_PER_S, left % NS_PER_S };
        int n = ppoll(p, ARRAY_SIZE(p), &ts, NULL);
        enum top_key key = KEY_NONE;
        if (cmd_stopped())
            return KEY_QUIT;
        if (n > 0 && p[1].revents)
            key = on_signal();
        if (n > 0 && key == KEY_NONE && p[2].revents)
            key = on_input();
        if (key != KEY_NONE || (n == 0 && clock_mono_ns() >= until_mono_ns))
            return key;
    }
}

"""janitor.py FOLDER COMMAND...: runs a command in a new private folder and leaves nothing of either.

The caller holds the other end of the janitor's standard input. When that end closes, for whatever reason (the caller
ended, was interrupted, was killed with SIGKILL), or when the command ends, everything the command started is killed and
the folder is removed. Exit status: the command's; 130 when it was cut short.

How it can be sure: it is a sub-reaper, so whatever loses its parent becomes its child, daemons included, and it goes on
until it has no child left. It is in a session of its own, so the terminal's Ctrl-C does not reach it. Should the janitor
itself be killed with SIGKILL, the command dies with it (setpriv --pdeathsig) and the caller removes the folder. Standard
library only: it runs before anything is installed.
"""
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
SHM = "/dev/shm"


def become_subreaper():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def children_of(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                found += [int(child) for child in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def descendants(pid):
    found, queue = [], [pid]
    while queue:
        children = children_of(queue.pop())
        found += children
        queue += children
    return found


def reap():
    """Waits for what has ended; False when there is no child left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return False
    return True


def kill_all():
    """Until there is nothing left: a process may fork between being listed and being killed."""
    while reap():
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)
    mark = os.path.basename(folder).replace("-", "_")
    for name in os.listdir(SHM) if os.path.isdir(SHM) else []:
        if mark in name:
            os.unlink(os.path.join(SHM, name))


def run(command, folder):
    """The command's exit status, or 130 when standard input closed before it ended."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**os.environ, "LT_STAGE_FOLDER": folder})
    ended = os.pidfd_open(child.pid)
    readable, _, _ = select.select([0, ended], [], [])
    if ended not in readable:
        return 130
    status = child.wait()
    return status if status >= 0 else 128 - status


def main():
    folder, command = os.path.abspath(sys.argv[1]), sys.argv[2:]
    for sig in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        # The caller decides, by closing our standard input. A handler, as SIG_IGN would be inherited by the command.
        signal.signal(sig, lambda *_: None)
    become_subreaper()
    status = 1
    try:
        os.mkdir(folder, 0o700)
        status = run(command, folder)
    finally:
        kill_all()
        remove(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())

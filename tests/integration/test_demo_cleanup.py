"""scripts/demo, ended at any moment and in any way, leaves no process and no file.

Every process of a demo inherits a mark in its environment and works below a TMPDIR of its own: what still has the mark,
or is still in the folder, was left behind.
"""
import os
import random
import secrets
import signal
import subprocess
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE_S = 120  # only how long a failure is waited for
MOMENTS = random.Random(20)  # seeded: a failing moment can be tried again


def marked(mark):
    """{pid: command line} of the processes that carry the mark; zombies have no environment and are nobody's worry."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as f:
                if mark.encode() not in f.read():
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as f:
                found[int(name)] = f.read().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return found


def settled(condition):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


class Demo:
    def __init__(self, lowtide, folder):
        self.folder, self.mark = str(folder), "LT_DEMO_MARK=" + secrets.token_hex(8)
        name, value = self.mark.split("=")
        env = {**os.environ, name: value, "TMPDIR": self.folder, "LOWTIDE": lowtide, "VENV": sys.prefix}
        self.process = subprocess.Popen([os.path.join(ROOT, "scripts", "demo")], env=env, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True,
                                        # a runner in the background may have handed down an ignored SIGINT
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def janitor(self):
        return next((pid for pid, line in marked(self.mark).items() if "janitor.py" in line), None)

    def expect_nothing_left(self):
        assert settled(lambda: not marked(self.mark)), f"left running: {marked(self.mark)}"
        assert settled(lambda: not os.listdir(self.folder)), f"left behind: {os.listdir(self.folder)}"
        name = "lowtide_demo"
        assert not [n for n in os.listdir("/dev/shm") if name in n]

    def is_in_full_swing(self):
        return any("scenario.load" in line for line in marked(self.mark).values())


@pytest.fixture
def demo(lowtide, tmp_path):
    made = Demo(lowtide, tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda s: s.name)
@pytest.mark.parametrize("after_s", [0.03, 0.1] + [round(MOMENTS.uniform(0.2, 6.0), 2) for _ in range(3)])
def test_ended_at_any_moment(demo, sig, after_s):
    time.sleep(after_s)
    demo.process.send_signal(sig)
    status = demo.process.wait(PATIENCE_S)
    assert status in (-sig, 128 + sig, 1)  # 1: Python had not got as far as to have handlers
    demo.expect_nothing_left()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGKILL], ids=lambda s: s.name)
def test_ended_in_full_swing(demo, sig):
    assert settled(demo.is_in_full_swing)
    os.killpg(demo.process.pid, sig)  # as a terminal does: to the whole foreground group
    demo.process.wait(PATIENCE_S)
    demo.expect_nothing_left()


def test_interrupted_twice(demo):
    assert settled(demo.is_in_full_swing)
    demo.process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(PATIENCE_S) == 128 + signal.SIGINT
    demo.expect_nothing_left()


def test_janitor_killed(demo):
    """Even the one that cleans up: what it ran dies with it, the script removes the folder and says it failed."""
    assert settled(demo.is_in_full_swing)
    os.kill(demo.janitor(), signal.SIGKILL)
    assert demo.process.wait(PATIENCE_S) == 128 + signal.SIGKILL
    demo.expect_nothing_left()


def test_without_a_binary(tmp_path):
    env = {**os.environ, "LOWTIDE": str(tmp_path / "absent"), "VENV": sys.prefix}
    done = subprocess.run([os.path.join(ROOT, "scripts", "demo")], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "absent" in done.stderr

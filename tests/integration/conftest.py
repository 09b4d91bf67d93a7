"""Fixtures for tests of the command line: a sandbox with its own store, and processes to look at. All of it is gone afterwards."""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

PATIENCE = 60  # seconds before a wait is given up: a limit for a hung test, never a measure


def wait_for(condition, what):
    """Polls until condition() is true; its value."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"never happened: {what}")


@dataclasses.dataclass
class Cli:
    """lowtide in a folder of its own: store, home and state folders lie in it."""

    binary: str
    folder: pathlib.Path
    env: dict = dataclasses.field(default_factory=dict)
    running: list = dataclasses.field(default_factory=list)

    @property
    def db(self):
        return self.folder / "lowtide.db"

    def environment(self, **more):
        base = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state"),
                "LOWTIDE_DB": str(self.db), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        keep = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        return {k: str(v) for k, v in {**base, **keep, **self.env, **more}.items() if v is not None}

    def run(self, *args, status=0, env=None, wrap=(), **kw):
        """Runs to the end; the exit status is checked. stdout and stderr are text."""
        done = subprocess.run([*wrap, self.binary, *map(str, args)], env=self.environment(**(env or {})), cwd=self.folder,
                              stdout=kw.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                              **({"stdin": subprocess.DEVNULL} if "input" not in kw and "stdin" not in kw else {}), **kw)
        assert done.returncode == status, f"{args}: status {done.returncode}, not {status}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *args, status=0, **kw):
        done = self.run(*args, "--json", status=status, **kw)
        return json.loads(done.stdout)

    def fails(self, *args, status, **kw):
        """The one error line of a command that must fail, without "lowtide "; nothing on stdout."""
        done = self.run(*args, status=status, **kw)
        lines = [line for line in done.stderr.splitlines() if line]
        assert done.stdout == ""
        assert lines and lines[-1].startswith("lowtide"), done.stderr
        return lines[-1].removeprefix("lowtide").lstrip()

    def start(self, *args, env=None, wrap=(), **kw):
        p = subprocess.Popen([*wrap, self.binary, *map(str, args)], env=self.environment(**(env or {})), cwd=self.folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
        self.running.append(p)
        return p

    def watch(self, *args, **kw):
        """A watcher that has committed at least one sweep."""
        p = self.start("watch", *args, **kw)
        wait_for(lambda: p.poll() is not None or self.sweeps() > 0, "the first sweep is stored")
        assert p.poll() is None, p.stderr.read()
        return p

    def sweeps(self):
        """Samples of processes in the store, all lives together."""
        return sum(t["samples"] for t in self.targets())

    def targets(self):
        """Those in the store; none as long as it is not there, or being made."""
        done = subprocess.run([self.binary, "status", "--json"], env=self.environment(), capture_output=True, text=True)
        return json.loads(done.stdout)["targets"] if done.returncode == 0 else []

    def stop(self, p, sig=signal.SIGTERM, status=0):
        p.send_signal(sig)
        out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == status, f"status {p.returncode}, not {status}\n{out}\n{err}"
        return out, err

    def close(self):
        for p in self.running:
            if p.poll() is None:
                p.kill()
            p.communicate()


@pytest.fixture
def cli(lowtide, tmp_path):
    made = Cli(lowtide, tmp_path)
    yield made
    made.close()


class Service:
    """A small process to watch: opens what it is told to by lines on its standard input."""

    CODE = """
import os, socket, subprocess, sys, tempfile
held = []
def listen(port=0):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("127.0.0.1", port)); s.listen(); held.append(s); return s.getsockname()[1]
def files(n): held.extend(open("/dev/null") for _ in range(n)); return n
def memory(mb): held.append(bytearray(os.urandom(1 << 20) * mb)); return mb
def child(seconds=1000): p = subprocess.Popen(["sleep", str(seconds)]); held.append(p); return p.pid
def end(p): os.kill(p, 9); os.waitpid(p, 0); return p
print("ready", flush=True)
for line in sys.stdin: print(eval(line), flush=True)
"""

    def __init__(self, name="service"):
        self.process = subprocess.Popen([sys.executable, "-c", self.CODE, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def do(self, expression):
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def service():
    made = Service()
    yield made
    made.close()


@pytest.fixture
def second_service():
    made = Service("second")
    yield made
    made.close()


@pytest.fixture
def golden(request):
    """golden(name, text): text must be that of tests/golden/NAME; with BLESS=1 in the environment the file is written instead."""

    def check(name, text):
        path = pathlib.Path(request.config.rootpath) / "tests" / "golden" / name
        if os.environ.get("BLESS") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text, f"{path.name} differs; BLESS=1 writes it anew"

    return check

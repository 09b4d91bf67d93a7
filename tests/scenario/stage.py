"""Sets up one run: upstream, service, load, in a private folder, and takes all of it down again.

Every process is started through setpriv --pdeathsig KILL and in a session of its own: when this process dies, however it
dies, they die; when the stage closes, their whole session does.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the folder that holds the package `scenario`
PATIENCE_S = 120  # a loaded machine is slow, not broken


class StageError(Exception):
    """Something that should have come up did not; the text has the end of its log."""


def wait_for(condition, what, process=None, log=None):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        if process is not None and process.poll() is not None:
            break
        time.sleep(0.05)
    tail = ""
    if log and os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as f:
            tail = "\n" + f.read()[-2000:]
    raise StageError(f"{what} did not come up{tail}")


def read_number(path):
    """The number in a file, None while there is no such file."""
    try:
        with open(path, encoding="ascii") as f:
            return int(f.read())
    except (FileNotFoundError, ValueError):
        return None


# A holder of a mount namespace with a /dev/shm of its own; the stage's processes are started inside. It says when it is so.
OWN_SHM = "mount -t tmpfs -o size=64m tmpfs /dev/shm && echo ready && exec sleep infinity"


def can_isolate():
    """Whether we may make mount namespaces (root may): else stages share the machine's /dev/shm."""
    command = ["unshare", "--mount", "--", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


class Stage:
    def __init__(self, folder, scenario, fault):
        self.folder, self.scenario, self.fault = folder, scenario, fault
        self.tmp = os.path.join(folder, "tmp")
        self.state = os.path.join(folder, "state")
        self.requests_csv = os.path.join(folder, "requests.csv")
        self.pid_file = os.path.join(folder, "service.pid")
        self.shm_prefix = "lt-scenario-" + os.path.basename(folder).replace("-", "_")
        self.processes = []
        self.inside = []  # what to put before a command so that it runs in the stage's namespace
        self.service = self.upstream_url = self.url = None
        os.makedirs(self.tmp)
        os.makedirs(self.state)

    # -- processes ------------------------------------------------------------------------------------------------

    def isolate(self):
        """Gives what is started from now on a /dev/shm of its own: segments carry no sign of who left them behind, so
        other services of this user on this machine would be taken for ours."""
        holder = self.start("holder", ["unshare", "--mount", "--", "sh", "-c", OWN_SHM])
        wait_for(lambda: "ready" in self.log_tail("holder"), "the namespace", holder, holder.log)
        self.inside = ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--"]

    def start(self, name, command, **environment):
        """Starts a command with this Python's packages; its output goes to NAME.log in the folder."""
        log = os.path.join(self.folder, name + ".log")
        env = {**os.environ, "PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": self.tmp, **environment}
        with open(log, "ab") as out:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *self.inside, *command], env=env,
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        process.log = log
        self.processes.append(process)
        return process

    def end(self, process, sig=signal.SIGTERM):
        """Asks with `sig`, insists after a while with SIGKILL, and takes what is left of its session."""
        if process.poll() is None:
            process.send_signal(sig)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process in self.processes:
            self.processes.remove(process)

    def close(self):
        for process in reversed(list(self.processes)):
            self.end(process)
        for name in os.listdir("/dev/shm"):
            if name.startswith(self.shm_prefix + "-"):
                os.unlink(os.path.join("/dev/shm", name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- the cast -------------------------------------------------------------------------------------------------

    def start_upstream(self):
        if not self.inside and can_isolate():
            self.isolate()
        port_file = os.path.join(self.folder, "upstream.port")
        process = self.start("upstream", [sys.executable, "-m", "scenario.upstream", "--port-file", port_file])
        port = wait_for(lambda: read_number(port_file), "the upstream", process, process.log)
        self.upstream_url = f"http://127.0.0.1:{port}/v1"

    def start_service(self):
        """A new life of the service; the pid file names it, the port is that of the first life."""
        if self.scenario.workers:
            return self.start_gunicorn()
        port_file = os.path.join(self.folder, "service.port")
        port = read_number(port_file) or 0
        with contextlib.suppress(FileNotFoundError):
            os.unlink(port_file)
        self.service = self.start("service", [
            sys.executable, "-m", "scenario.service", "--fault", self.fault, "--upstream", self.upstream_url,
            "--folder", self.state, "--tmp", self.tmp, "--shm-prefix", self.shm_prefix, "--slots",
            str(self.scenario.slots), "--port", str(port), "--port-file", port_file, "--pid-file", self.pid_file])
        port = wait_for(lambda: read_number(port_file), "the service", self.service, self.service.log)
        self.url = f"http://127.0.0.1:{port}"
        return self.service

    def start_gunicorn(self):
        address_file = os.path.join(self.folder, "gunicorn.address")
        config = os.path.join(os.path.dirname(os.path.abspath(__file__)), "service", "gunicorn.conf.py")
        self.service = self.start("service", [
            sys.executable, "-m", "gunicorn", "-c", config, "-w", str(self.scenario.workers), "--max-requests",
            str(self.scenario.max_requests), "--max-requests-jitter", str(self.scenario.jitter), "--pid", self.pid_file,
            "scenario.service.app:app"],
            LT_FAULT=self.fault, LT_UPSTREAM=self.upstream_url, LT_FOLDER=self.state, LT_TMP=self.tmp,
            LT_SHM_PREFIX=self.shm_prefix, LT_SLOTS=str(self.scenario.slots), LT_ADDRESS_FILE=address_file)
        port = wait_for(lambda: read_number(address_file), "gunicorn", self.service, self.service.log)
        self.url = f"http://127.0.0.1:{port}"
        return self.service

    def start_load(self, seconds=None, idle=None, out=None, seed=1):
        s = self.scenario
        mix = json.dumps([asdict(call) for call in s.mix()])
        return self.start("load", [
            sys.executable, "-m", "scenario.load", "--url", self.url, "--mix", mix, "--rate", str(s.rate), "--seconds",
            str(seconds or s.seconds), "--idle", str(s.idle if idle is None else idle), "--seed", str(seed), "--out",
            out or self.requests_csv])

    def log_tail(self, name):
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

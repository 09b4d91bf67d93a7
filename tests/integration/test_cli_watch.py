"""watch, status, top, mark and the store verbs against real processes."""
import errno
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import socket
import sqlite3
import struct
import subprocess
import termios
import time

import pytest

from conftest import PATIENCE, wait_for

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user or to mount a small disk")


# ---- the way of a sample -------------------------------------------------------------------------------------------

def test_once(cli, service):
    service.do("files(20)")
    done = cli.json("watch", "--target", f"api=pid:{service.pid}", "--once")
    assert done["sweeps"] == 1 and done["missed"] == 0 and done["samples"] == 1
    assert done["targets"] == [{"name": "api", "selector": f"pid:{service.pid}", "lives": 1, "present": True}]
    status = cli.json("status", "api")
    assert [(t["name"], t["samples"]) for t in status["targets"]] == [("api", 1)]  # that of its process, not the row of the target
    [life] = status["lives"]
    assert life["pid"] == service.pid and life["cause"] == "unwatched"
    assert life["fds"] == len(os.listdir(f"/proc/{service.pid}/fd"))
    assert life["end_rss"] > 1 << 20


def test_children_are_lives_and_their_end_is_kept(cli, service):
    child = service.do("child()")
    p = cli.watch(f"api=pid:{service.pid}", "--interval", "50ms")
    wait_for(lambda: cli.json("status", "api")["targets"][0]["running"] == 2, "parent and child are seen")
    service.do(f"end({child})")
    wait_for(lambda: cli.json("status", "api")["targets"][0]["running"] == 1, "the child's end is seen")
    cli.stop(p)
    lives = {life["pid"]: life for life in cli.json("status", "api")["lives"]}
    assert lives[service.pid]["cause"] == "unwatched"
    assert lives[child]["cause"] in ("signal", "vanished") if os.geteuid() else lives[child]["cause"] == "signal"
    if lives[child]["cause"] == "signal":
        assert lives[child]["signal"] == signal.SIGKILL


def test_a_selector_that_is_no_text_is_shown_all_the_same(cli):
    odd = os.fsdecode(b"cmd:^nothing like it\xff\x1b")
    done = cli.json("watch", f"odd={odd}", "--once", status=3)
    assert done["targets"][0]["selector"] == "cmd:^nothing like it??"
    assert [t["selector"] for t in cli.json("status")["targets"]] == ["cmd:^nothing like it??"]
    assert "\x1b" not in cli.run("status").stdout


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stop_is_clean(cli, service, sig):
    p = cli.watch(f"api=pid:{service.pid}", "--interval", "20ms")
    wait_for(lambda: cli.sweeps() > 10, "ten samples")
    cli.stop(p, sig)
    status = cli.json("status", "api")
    assert status["watcher_pid"] is None
    assert [life["cause"] for life in status["lives"]] == ["unwatched"]
    cli.run("store", "verify")


def test_kill_9_loses_at_most_the_sweep_in_flight(cli, service):
    p = cli.watch(f"api=pid:{service.pid}", "--interval", "10ms")
    for _ in range(3):
        wait_for(lambda: cli.sweeps() > 20, "samples")
        seen = cli.sweeps()
        cli.stop(p, signal.SIGKILL, status=-signal.SIGKILL)
        cli.run("store", "verify")
        assert cli.sweeps() >= seen
        p = cli.watch(f"api=pid:{service.pid}", "--interval", "10ms")
        wait_for(lambda: cli.sweeps() > seen, "samples behind the old ones")
    assert len(cli.json("status", "api")["lives"]) == 1  # the same process is the same life
    cli.stop(p)


def test_two_watchers(cli, service):
    first = cli.watch(f"api=pid:{service.pid}", "--interval", "50ms")
    line = cli.fails("watch", f"b=pid:{service.pid}", status=3)
    assert str(first.pid) in line and "; " in line
    assert cli.json("status")["watcher_pid"] == first.pid
    cli.stop(first)


def test_names_from_selectors(cli, service, second_service):
    port = second_service.do("listen()")
    cli.run("watch", f"pid:{service.pid}", f"port:{port}", "--once")
    comm = pathlib.Path(f"/proc/{service.pid}/comm").read_text().strip()
    assert {t["name"] for t in cli.json("status")["targets"]} == {comm, f"port-{port}"}


def test_self(cli, service):
    cli.run("watch", f"api=pid:{service.pid}", "--once", "--self")
    assert {t["name"] for t in cli.json("status")["targets"]} == {"api", "lowtide"}


def test_temp_folders(cli, service, tmp_path_factory):
    folder = tmp_path_factory.mktemp("count")
    for i in range(7):
        (folder / f"f{i}").write_bytes(b"x" * 5000)
    p = cli.watch(f"api=pid:{service.pid}", "--tmp", folder, "--interval", "50ms")
    [whole] = [r for r in cli.json("top", "api")["rows"] if r["pid"] == 0]
    cli.stop(p)
    assert whole["tmpfiles"] == 7 and whole["tmp_bytes"] >= 7 * 5000


# ---- targets that are not there, or too many ------------------------------------------------------------------------

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_target_that_never_appears(cli):
    port = free_port()
    line = cli.fails("watch", "--target", f"api=port:{port}", "--interval", "20ms", "--duration", "200ms", status=3)
    assert line == f"watch: api: no process matched port:{port}; start it, or correct the selector"


def test_target_that_appears_later(cli, service):
    port = free_port()
    p = cli.start("watch", "--target", f"api=port:{port}", "--interval", "20ms")
    assert select.select([p.stderr], [], [], PATIENCE)[0], "it says that it waits"
    wait_for(cli.targets, "the target is known")
    assert cli.sweeps() == 0
    service.do(f"listen({port})")
    wait_for(lambda: cli.sweeps() > 0, "it is found")
    _, err = cli.stop(p)
    assert "api: waiting: " in err and "api: found: " in err
    assert err.count("waiting: ") == 1


def test_target_that_goes_and_comes_back(cli, service, second_service):
    port = service.do("listen()")
    p = cli.watch("--target", f"api=port:{port}", "--interval", "20ms")
    service.close()
    wait_for(lambda: cli.json("status")["targets"][0]["running"] == 0, "it is gone")
    second_service.do(f"listen({port})")
    wait_for(lambda: cli.json("status")["targets"][0]["running"] == 1, "its successor is found")
    _, err = cli.stop(p)
    assert "api: gone: " in err
    assert {life["pid"] for life in cli.json("status", "api")["lives"]} == {service.pid, second_service.pid}


def test_two_processes_on_one_port(cli, service, second_service):
    port = service.do("listen()")
    second_service.do(f"listen({port})")
    line = cli.fails("watch", f"api=port:{port}", "--once", status=2)
    assert str(service.pid) in line and str(second_service.pid) in line and "; " in line


@as_root
def test_no_permission_says_what_is_missing(cli, service, lowtide):
    cli.folder.chmod(0o777)
    for parent in list(cli.folder.parents)[:4]:
        if parent != pathlib.Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    binary = cli.folder / "lowtide"
    binary.write_bytes(pathlib.Path(lowtide).read_bytes())
    binary.chmod(0o755)
    cli.binary = str(binary)
    done = cli.run("watch", f"api=pid:{service.pid}", "--once", wrap=NOBODY)
    assert re.search(r"^lowtide watch: api: permission: .*CAP_\w+", done.stderr, flags=re.M), done.stderr
    [life] = cli.json("status", "api")["lives"]
    assert life["end_rss"] > 1 << 20  # what may be read is read
    assert life["fds"] == len(os.listdir(f"/proc/{service.pid}/fd"))  # newer kernels tell the number to everybody


# ---- disks ----------------------------------------------------------------------------------------------------------

@as_root
def test_read_only_disk(cli, service):
    folder = cli.folder / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", folder], check=True)
    try:
        line = cli.fails("watch", f"api=pid:{service.pid}", "--db", folder / "l.db", status=3)
        assert str(folder) in line and "; " in line
    finally:
        subprocess.run(["umount", folder], check=True)


def fill_up(path):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError as e:
        assert e.errno == errno.ENOSPC
    finally:
        os.close(fd)


def read_now(stream):
    """What can be read without waiting."""
    return os.read(stream.fileno(), 65536).decode() if select.select([stream], [], [], 0)[0] else ""


@as_root
def test_full_disk_is_said_once_and_nothing_is_lost(cli, service):
    folder = cli.folder / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    cli.env["LOWTIDE_DB"] = folder / "l.db"
    try:
        p = cli.watch(f"api=pid:{service.pid}", "--interval", "20ms")
        fill_up(folder / "ballast")
        log = []
        wait_for(lambda: log.append(read_now(p.stderr)) or "sampling goes on" in "".join(log), "the full disk is said")
        before = time.time()
        time.sleep(0.5)  # sweeps that only memory holds
        after = time.time()
        (folder / "ballast").unlink()
        wait_for(lambda: log.append(read_now(p.stderr)) or "written again" in "".join(log), "the store is written again")
        log.append(cli.stop(p)[1])
        said = "".join(log)
        assert said.count("sampling goes on") == 1 and said.count("written again") == 1
        cli.run("store", "verify")
        status = cli.json("status", "api")
        assert status["targets"][0]["samples"] > 0
        assert gap_free(cli, before, after)
    finally:
        for p in cli.running:
            p.kill()
            p.wait()
        subprocess.run(["umount", folder], check=True)


def gap_free(cli, before, after):
    """The hole of the full disk is no gap: what was kept in memory has been written."""
    info = cli.json("store", "info")
    return info["gaps"] == 0 and after > before


def test_no_store_yet(cli):
    for args in (["status"], ["store", "verify"], ["store", "info"], ["mark", "api", "x"], ["top"]):
        line = cli.fails(*args, status=3)
        assert str(cli.db) in line and "; " in line
    assert list(cli.folder.iterdir()) == []


def test_unknown_target_names_those_there_are(cli, service):
    cli.run("watch", f"api=pid:{service.pid}", "--once")
    for args in (["status", "apo"], ["mark", "apo", "x"], ["top", "apo"]):
        assert "api" in cli.fails(*args, status=3)


def test_newer_store(cli, service):
    import sqlite3
    cli.run("watch", f"api=pid:{service.pid}", "--once")
    with sqlite3.connect(cli.db) as db:  # as a later release would leave it
        db.execute("PRAGMA user_version = 9999")
        db.execute("DELETE FROM meta")
    db.close()
    before = cli.db.read_bytes()
    for args in (["status"], ["watch", f"api=pid:{service.pid}", "--once"], ["mark", "api", "x"]):
        line = cli.fails(*args, status=3)
        assert "newer" in line and "; " in line
    assert cli.db.read_bytes() == before


def test_damaged_store_is_read_and_said(cli, service):
    cli.run("watch", f"api=pid:{service.pid}", "--interval", "10ms", "--duration", "3s")
    data = bytearray(cli.db.read_bytes())
    assert len(data) > 8192
    for at in range(len(data) // 2, len(data) // 2 + 512):
        data[at] ^= 0x5A
    cli.db.write_bytes(data)
    for leftover in cli.folder.glob("lowtide.db-*"):
        leftover.unlink()
    done = cli.run("store", "verify", status=1)
    assert "damaged" in done.stdout
    verdict = cli.json("store", "verify", status=1)
    assert verdict["sound"] is False and verdict["damage"]


def test_damage_is_said_once_in_one_line(cli, service):
    cli.run("watch", f"api=pid:{service.pid}", "--once")
    with sqlite3.connect(cli.db) as db:
        db.execute("DROP TABLE hkey")
    db.close()
    [line] = cli.run("status").stderr.splitlines()
    assert line.count(str(cli.db)) == 1 and line.count("store verify") == 1


def test_a_file_that_is_no_store(cli, service):
    cli.db.write_text("this is a shopping list, not a database\n" * 50)
    for args in (["status"], ["watch", f"api=pid:{service.pid}", "--once"]):
        line = cli.fails(*args, status=2)
        assert str(cli.db) in line and "; " in line
    assert cli.db.read_text().startswith("this is a shopping list")


# ---- marks, info ----------------------------------------------------------------------------------------------------

def test_mark(cli, service):
    cli.run("watch", f"api=pid:{service.pid}", "--once")
    done = cli.json("mark", "api", "v1.42", "--kind", "deploy", "--at", "2026-11-30T20:30:00Z")
    assert done == {"target": "api", "at": "2026-11-30T20:30:00Z", "kind": "deploy", "text": "v1.42"}
    assert cli.json("store", "info")["events"] == 1
    assert cli.fails("mark", "api", "", status=2) == 'mark: TEXT: is empty; say what happened, such as "v1.42"'


def test_store_info(cli, service):
    cli.run("watch", f"api=pid:{service.pid}", "--interval", "20ms", "--duration", "500ms")
    info = cli.json("store", "info")
    assert info["targets"] == 1 and info["lives"] >= 1 and info["watcher_pid"] is None
    assert [t["name"] for t in info["tiers"]] == ["raw", "5 min", "1 h"]
    text = cli.run("store", "info").stdout
    assert max(map(len, text.splitlines()[1:])) <= 100


def test_status_text(cli, service, golden):
    cli.run("watch", f"api=pid:{service.pid}", "--once")
    for args in ([], ["api"]):
        text = cli.run("status", *args).stdout
        assert max(map(len, text.splitlines()[1:])) <= 100
    known = re.sub(r"^.*lowtide\.db: ", "STORE: ", text)
    known = re.sub(r"\S+Z\b", "TIME", known)
    known = re.sub(r"\d[\d.,]*(ns|us|ms|s|m|h|d| [KMG]?B)?( \d\d[smh])?\b", "N", known)
    golden("cli/status-target.txt", re.sub(r" +", " ", re.sub(r" \S*python\S*.*$", " ROLE", known, flags=re.M)))


# ---- the service manager --------------------------------------------------------------------------------------------

def test_notify(cli, service):
    path = cli.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(path))
        s.settimeout(PATIENCE)
        p = cli.start("watch", f"api=pid:{service.pid}", "--interval", "10s", env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": 100000})
        assert s.recv(100) == b"READY=1"
        assert s.recv(100) == b"WATCHDOG=1"
        assert s.recv(100) == b"WATCHDOG=1"
        cli.stop(p)
        said = [s.recv(100)]
        while said[-1] != b"STOPPING=1":
            assert said[-1] == b"WATCHDOG=1"
            said.append(s.recv(100))


def test_unreachable_notify_socket_is_no_reason_to_stop(cli, service):
    done = cli.run("watch", f"api=pid:{service.pid}", "--once", env={"NOTIFY_SOCKET": "/nonexistent/notify"})
    assert "NOTIFY_SOCKET" in done.stderr


# ---- top ------------------------------------------------------------------------------------------------------------

def test_top_prints_one_frame_when_it_is_not_a_terminal(cli, service):
    service.do("memory(30)")
    text = cli.run("top", f"pid:{service.pid}", "--interval", "100ms").stdout
    lines = text.splitlines()
    assert "\033" not in text and max(map(len, lines)) <= 100
    [row] = [line for line in lines if str(service.pid) in line.split()[:1]]
    assert re.search(r" \d\d\.\d MB ", row)


def test_top_of_the_store(cli, service):
    p = cli.watch(f"api=pid:{service.pid}", "--interval", "20ms")
    wait_for(lambda: cli.sweeps() > 20, "samples")
    rows = cli.json("top", "api")["rows"]
    assert [r["pid"] for r in rows if r["pid"]] == [service.pid]
    assert rows[0]["target"] == "api"
    assert str(service.pid) in cli.run("top").stdout
    cli.stop(p)
    assert "; " in cli.fails("top", "api", status=3)  # nothing runs any more


class Terminal:
    """lowtide top on a terminal of its own."""

    def __init__(self, cli, *args):
        self.primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
        self.before = termios.tcgetattr(secondary)
        self.secondary = secondary
        self.process = subprocess.Popen([cli.binary, *args], stdin=secondary, stdout=secondary, stderr=subprocess.PIPE,
                                        env=cli.environment(TERM="xterm"), cwd=cli.folder, start_new_session=True)
        self.seen = ""

    def read_until(self, text):
        def more():
            if select.select([self.primary], [], [], 0.05)[0]:
                self.seen += os.read(self.primary, 65536).decode(errors="replace")
            return text in self.seen
        wait_for(more, f"{text!r} on the screen")

    def send(self, keys):
        self.seen = ""
        os.write(self.primary, keys.encode())

    def end(self):
        """The status; the terminal must be as it was."""
        drained = wait_for(lambda: self.drain() is not None and self.process.poll() is not None, "top ends")
        assert drained
        self.drain()
        assert "\033[?1049l" in self.seen and "\033[?25h" in self.seen
        assert termios.tcgetattr(self.secondary)[3] == self.before[3]
        return self.process.returncode

    def drain(self):
        while select.select([self.primary], [], [], 0)[0]:
            self.seen += os.read(self.primary, 65536).decode(errors="replace")
        return self.seen

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.primary)
        os.close(self.secondary)


@pytest.fixture
def top(cli, service):
    made = Terminal(cli, "top", f"pid:{service.pid}", "--interval", "100ms")
    made.read_until("\033[?1049h")
    made.read_until("by anon")
    yield made
    made.close()


def test_top_keys(top):
    top.send("s")
    top.read_until("by grown")
    top.send("\033[B")
    top.read_until("by grown")
    top.send("q")
    assert top.end() == 0


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_top_gives_the_terminal_back(top, sig):
    top.process.send_signal(sig)
    assert top.end() == 0


def test_top_gives_the_terminal_back_when_it_crashes(top):
    top.process.send_signal(signal.SIGABRT)
    assert top.end() == -signal.SIGABRT


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_top_can_be_suspended(top):
    top.seen = ""
    top.process.send_signal(signal.SIGTSTP)
    wait_for(lambda: state_of(top.process.pid) == "T", "it stops")
    assert "\033[?1049l" in top.drain()
    assert termios.tcgetattr(top.secondary)[3] == top.before[3]
    top.seen = ""
    top.process.send_signal(signal.SIGCONT)
    top.read_until("\033[?1049h")
    top.read_until("by anon")
    top.send("q")
    assert top.end() == 0


def test_top_follows_the_size_of_the_terminal(top):
    fcntl.ioctl(top.secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 40, 0, 0))
    top.process.send_signal(signal.SIGWINCH)
    top.drain()  # frames of the old size; one may still be on its way
    top.seen = ""
    top.read_until("\033[J")
    top.seen = ""
    top.read_until("\033[J")
    lines = re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", top.seen).split("\r\n")
    assert max(map(len, lines)) <= 41
    top.send("q")
    assert top.end() == 0


def test_top_of_nothing(cli):
    line = cli.fails("top", f"port:{free_port()}", "--interval", "100ms", status=3)
    assert "; " in line
    assert "nonsense:3" in cli.fails("top", "nonsense:3", status=2)

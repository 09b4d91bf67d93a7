"""diagnose and doctor at the command line: verdicts, exit statuses, windows, what cannot be looked at, and stopping early."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

BEGIN = 1_790_000_000

# Opens a descriptor for each turn (or closes it), and does a little work besides.
WORKER = """
import sys, time
held = []
print("ready", flush=True)
while True:
    f = open("/dev/null")
    if sys.argv[1] == "leak":
        held.append(f)
    sum(i * i for i in range(20000))
    time.sleep(0.01)
"""


def write_curve(path, rows):
    path.write_text("ts,pid,start_time,rss_anon,fds,threads\n" + "".join(",".join(map(str, r)) + "\n" for r in rows))


def write_requests(path, seconds, rate=20):
    path.write_text("ts,endpoint,n\n" + "".join(f"{BEGIN + i},/chat,{rate}\n" for i in range(seconds)))


def rows(seconds, fds_per_s=0.0, first=0):
    return [(BEGIN + i, 77, BEGIN - 5, 80_000_000 + 4096 * (i % 5), 20 + int(max(0, i - first) * fds_per_s), 4) for i in range(seconds)]


def bring(cli, seconds=400, fds_per_s=0.0, first=0, requests=True):
    write_curve(cli.folder / "curve.csv", rows(seconds, fds_per_s, first))
    cli.run("import", "api", cli.folder / "curve.csv")
    if requests:
        write_requests(cli.folder / "requests.csv", seconds)
        cli.run("import", "api", cli.folder / "requests.csv", "--kind", "requests")


def series(document, name):
    return next(s for s in document["series"] if s["name"] == name)


def test_leak_is_1_and_says_how_much(cli):
    bring(cli, fds_per_s=1)
    d = cli.json("diagnose", "api", "--steady", status=1)
    fds = series(d, "fds")
    assert d["verdict"] == "leak" and fds["verdict"] == "leak" and fds["class"] == "count"
    assert 48 < fds["per_1k_requests"]["lo"] <= fds["per_1k_requests"]["value"] <= fds["per_1k_requests"]["hi"] < 52
    assert series(d, "rss_anon")["verdict"] == "ok"
    assert cli.run("diagnose", "api", "--steady", status=1).stdout.startswith("api ")


def test_clean_is_0(cli):
    bring(cli)
    d = cli.json("diagnose", "api", "--steady")
    assert d["verdict"] == "ok" and {s["verdict"] for s in d["series"]} == {"ok"}


def test_memory_of_minutes_is_never_ok_by_itself(cli):
    bring(cli)
    assert cli.json("diagnose", "api", status=3)["verdict"] == "insufficient"


def test_only_the_series_asked_for(cli):
    bring(cli, fds_per_s=1)
    d = cli.json("diagnose", "api", "--steady", "--series", "threads,rss_anon")
    assert [s["name"] for s in d["series"]] == ["rss_anon", "threads"]
    assert "no such series" in cli.fails("diagnose", "api", "--series", "fdz", status=2)
    assert "never judged" in cli.fails("diagnose", "api", "--series", "cpu_ns", status=2)


def test_as_of_knows_nothing_later(cli):
    bring(cli, fds_per_s=1, first=200)
    d = cli.json("diagnose", "api", "--steady", "--as-of", BEGIN + 190)
    assert d["verdict"] == "ok" and series(d, "fds")["now"] == 20
    assert d["to"] == "2026-09-21T14:16:30Z"
    assert d["lives"][0]["end"] is None and d["lives"][0]["cause"] == "running"


def test_explain_shows_numbers(cli):
    bring(cli, fds_per_s=1)
    text = cli.run("diagnose", "api", "--steady", "--explain", status=1).stdout
    assert "deepest fall of the floor" in text and "band: what healthy runs do" in text
    assert "evidence" in series(cli.json("diagnose", "api", "--steady", "--explain", status=1), "fds")


def test_without_store_target_or_window(cli):
    cli.fails("diagnose", "api", status=3)
    bring(cli)
    assert "api" in cli.fails("diagnose", "nobody", status=3)
    assert "before it begins" in cli.fails("diagnose", "api", "--since", BEGIN + 5000, status=3)
    assert "no sample" in cli.fails("diagnose", "api", "--as-of", BEGIN - 5, "--since", BEGIN - 10, status=3)


def test_marks_show_on_the_page(cli):
    bring(cli, fds_per_s=1)
    cli.run("mark", "api", "v2 rolled out", "--kind", "deploy", "--at", BEGIN + 100)
    text = cli.run("diagnose", "api", "--steady", status=1).stdout
    assert "deploy: v2 rolled out" in text


# ---- doctor ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def worker():
    running = []

    def start(kind):
        p = subprocess.Popen([sys.executable, "-c", WORKER, kind], stdout=subprocess.PIPE, text=True)
        running.append(p)
        assert p.stdout.readline() == "ready\n"
        return p

    yield start
    for p in running:
        p.kill()
        p.wait()
        p.stdout.close()


def test_doctor_finds_the_descriptors(cli, worker):
    p = worker("leak")
    d = cli.json("doctor", p.pid, "--for", "4s", status=1)
    assert series(d, "fds")["verdict"] == "leak" and series(d, "files")["verdict"] == "leak"
    assert d["pid"] == p.pid and any(c["key"] == "/dev/null" and c["after"] > c["before"] for c in d["changes"])
    assert not cli.db.exists()


def test_doctor_memory_is_at_most_suspect(cli, worker):
    p = worker("leak")
    d = cli.json("doctor", p.pid, "--for", "3s", status=1)
    assert series(d, "rss_anon")["verdict"] in ("ok", "bounded", "suspect", "insufficient")


def test_doctor_leaves_the_clean_one_in_peace(cli, worker):
    p = worker("clean")
    d = cli.json("doctor", p.pid, "--for", "4s")
    assert d["verdict"] in ("ok", "bounded")


def test_doctor_of_the_idle_says_so(cli, service):
    d = cli.json("doctor", service.pid, "--for", "2s", status=3)
    assert d["verdict"] == "insufficient" and "next to nothing" in d["reason"]


def test_doctor_usage(cli, service):
    assert "not a process id" in cli.fails("doctor", "abc", status=2)
    cli.fails("doctor", 2**22 + 1, status=3)
    assert "--interval" in cli.fails("doctor", service.pid, "--for", "2s", "--interval", "1s", status=2)


def test_doctor_stopped_early_judges_what_there_is(cli, worker):
    p = worker("leak")
    doctor = cli.start("doctor", p.pid, "--for", "600s", "--interval", "50ms", "--json")
    time.sleep(4)
    doctor.send_signal(signal.SIGINT)
    out, err = doctor.communicate(timeout=60)
    assert doctor.returncode in (1, 3), err
    assert json.loads(out)["seconds"] < 300
    assert os.listdir(cli.folder) == []


def test_doctor_says_when_the_process_ended(cli, worker):
    p = worker("leak")
    doctor = cli.start("doctor", p.pid, "--for", "60s", "--interval", "100ms", "--json")
    time.sleep(2)
    p.kill()
    p.wait()
    out, err = doctor.communicate(timeout=60)
    assert doctor.returncode in (1, 3), err
    assert any("ended" in line for line in json.loads(out)["not_looked_at"])

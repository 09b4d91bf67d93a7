"""import: curves, requests and events that people bring; bad lines; interruption; files larger than memory should hold."""
import os
import resource
import signal
import sqlite3

import pytest

from conftest import wait_for

BASE = 1796000000


def curve(n, start=BASE):
    return "".join(f"{start + 30 * i},{200000 + i},{20 + i % 3},8,{i % 2}\n" for i in range(n))


def write(cli, name, text):
    path = cli.folder / name
    path.write_text(text)
    return path


def content(cli):
    """All that readers can see of the store."""
    status = cli.json("status", "api")
    for t in status["targets"]:
        t.pop("age_s")
    info = cli.json("store", "info")
    keep = ("targets", "lives", "events", "gaps", "request_rows")
    samples = sum(t["samples"] for t in status["targets"])
    return status["lives"], {k: info[k] for k in keep}, samples


def test_curve_without_header(cli):
    path = write(cli, "c.csv", curve(5000))
    done = cli.json("import", "api", path)
    assert (done["kind"], done["rows"], done["bad"]) == ("curve", 5000, 0)
    [life] = cli.json("status", "api")["lives"]
    assert life["samples"] == 5000 and life["fds"] == 20 + 4999 % 3
    assert life["pid"] is None  # the file names none, and none is made up
    assert cli.run("status", "api").stdout.split("\n")[-2].split()[0] == "-"
    assert cli.json("diagnose", "api", status=3)["lives"][0]["pid"] is None
    cli.run("store", "verify")


def test_curve_with_lives(cli):
    rows = ["ts,pid,start_time,rss_anon,fds,tmpfiles"]
    for life, pid in enumerate((100, 200, 100)):
        start = BASE + 10000 * life
        rows += [f"{start + 30 * i},{pid},{start},{1000000 + i},{i},{i}" for i in range(200)]
    done = cli.json("import", "api", write(cli, "c.csv", "\n".join(rows) + "\n"))
    assert done["rows"] == 600
    lives = cli.json("status", "api")["lives"]
    assert sorted((life["pid"], life["samples"]) for life in lives) == [(100, 200), (100, 200), (200, 200)]


def test_again_changes_nothing(cli):
    c = write(cli, "c.csv", curve(3000))
    q = write(cli, "q.csv", "ts,endpoint,n\n" + "".join(f"{BASE + 30 * (i // 2)},/chat,{i % 5}\n" for i in range(3000)))
    e = write(cli, "e.csv", f"ts,kind,text\n{BASE + 10},deploy,v1\n{BASE + 20},config,v2\n{BASE + 20},config,v2\n")
    for f in (c, q, e):
        cli.run("import", "api", f)
    before, sums = content(cli), requests_sum(cli)
    assert before[1]["events"] == 2 and before[1]["request_rows"] == 1500
    assert sums == sum(i % 5 for i in range(3000))  # two lines of one key both count
    for f in (c, q, e):
        cli.run("import", "api", f)
    assert content(cli) == before and requests_sum(cli) == sums


def requests_sum(cli):
    """From the store's file itself: no verb prints it."""
    with sqlite3.connect(f"file:{cli.db}?mode=ro", uri=True) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%request%'").fetchall():
            columns = [c[1] for c in db.execute(f"PRAGMA table_info({name})")]
            if "n" in columns:
                return db.execute(f"SELECT sum(n) FROM {name}").fetchone()[0]
    pytest.fail("no table of requests")


def test_bad_lines_are_named_and_the_others_taken(cli):
    lines = curve(100).splitlines()
    bad = {5: "nonsense", 7: f"{BASE},nan,1,1,1", 9: f"{BASE},-5,1,1,1", 11: f"{BASE},1,2", 13: ",1,1,1,1"}
    for number, text in bad.items():
        lines.insert(number - 1, text)
    path = write(cli, "c.csv", "\n".join(lines) + "\n")
    done = cli.run("import", "api", path)
    for number in bad:
        assert f"lowtide import: {path}:{number}: " in done.stderr
    report = cli.json("import", "api", path)
    assert (report["rows"], report["bad"]) == (100, 5)
    assert [b["line"] for b in report["bad_lines"]] == list(bad)


def test_only_ten_bad_lines_are_named(cli):
    path = write(cli, "c.csv", curve(3) + "x,1,1,1,1\n" * 500)
    done = cli.run("import", "api", path)
    assert done.stderr.count("; the line is left out") == 10
    assert "490 more bad lines" in done.stderr


def test_disorder_and_duplicates(cli):
    lines = curve(1000).splitlines()
    disordered = lines[500:] + lines[:500] + lines[100:200]
    cli.run("import", "api", write(cli, "a.csv", "\n".join(disordered) + "\n"))
    [life] = cli.json("status", "api")["lives"]
    assert life["samples"] == 1000
    cli.run("store", "verify")


@pytest.mark.parametrize("text, status, why", [
    ("", 3, "holds no rows"),
    ("x,1,1,1,1\n" * 3, 2, "unknown columns: x, 1"),
    (f"{BASE},1,1,1,1,1,1,1,1\n", 2, "first line"),
    ("ts,rss_kb,nonsense\n1,1,1\n", 2, "nonsense"),
    ("ts,rss_kb\nx,1\ny,2\n", 2, "all 2 lines are bad"),
])
def test_files_that_give_nothing(cli, text, status, why):
    path = write(cli, "c.csv", text)
    line = cli.fails("import", "api", path, status=status)
    assert str(path) in line and why in line and "; " in line
    assert not cli.db.exists()  # nothing is made for nothing


def test_missing_file(cli):
    assert cli.fails("import", "api", "none.csv", status=3) == \
        "import: none.csv: No such file or directory; name a CSV file that can be read"


def test_unknown_columns_may_be_passed_over(cli):
    path = write(cli, "c.csv", f"ts,rss_kb,colour\n{BASE},1000,red\n")
    cli.fails("import", "api", path, status=2)
    assert "colour" in cli.run("import", "api", path, "--skip-unknown").stderr


def test_standard_input(cli):
    path = write(cli, "c.csv", curve(50))
    with open(path) as f:
        assert cli.json("import", "api", "-", stdin=f)["rows"] == 50  # a file tells its kind
    done = cli.run("import", "api", "-", "--kind", "curve", input=curve(70))
    assert "70 rows of curve" in done.stdout
    assert "--kind" in cli.fails("import", "api", "-", input=curve(70), status=2)  # a pipe does not


def test_kinds_are_guessed(cli):
    for name, text in {
        "curve": curve(3), "requests": f"{BASE},/chat,v1,0,ok,5,17\n", "events": f"{BASE},deploy,v1\n",
    }.items():
        assert cli.json("import", "api", write(cli, f"{name}.csv", text))["kind"] == name
    headers = {"curve": "ts,rss_anon\n1796000000,5\n", "requests": "n,ts,endpoint\n3,1796000000,/x\n", "events": "text,kind,ts\na,b,1796000000\n"}
    for name, text in headers.items():
        assert cli.json("import", "api", write(cli, f"h-{name}.csv", text))["kind"] == name


def test_interrupted_import_leaves_whole_chunks_and_can_be_completed(cli):
    path = write(cli, "c.csv", curve(400000))
    p = cli.start("import", "api", path)
    wait_for(lambda: p.poll() is not None or cli.sweeps() > 0, "a chunk is written")
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode in (0, 3)  # 0: it was done before the signal came
    if p.returncode == 3:
        assert "run the same command again" in err
    cli.run("store", "verify")
    cli.run("import", "api", path)
    [life] = cli.json("status", "api")["lives"]
    assert life["samples"] == 400000


def minds(pid, sig):
    with open(f"/proc/{pid}/status") as f:  # caught or blocked
        masks = [int(line.split()[1], 16) for line in f if line.startswith(("SigBlk", "SigCgt"))]
    return any(mask >> (sig - 1) & 1 for mask in masks)


def test_a_line_without_end_can_be_stopped(cli):
    p = cli.start("import", "api", "/dev/zero", "--kind", "curve")
    wait_for(lambda: minds(p.pid, signal.SIGTERM), "it minds signals")
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 3 and "stopped" in err


def test_memory_is_bounded(cli):
    """A file many times larger than the memory the import may take."""
    path = cli.folder / "big.csv"
    with open(path, "w") as f:
        for k in range(40):
            f.write(curve(20000, BASE + 600000 * k))
    limit = 160 << 20
    assert path.stat().st_size > 10 << 20
    if any(name.endswith("SAN_OPTIONS") for name in os.environ):
        limit = resource.RLIM_INFINITY  # a sanitizer's shadow alone is larger
    done = cli.run("import", "api", path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert "800,000 rows" in done.stdout


def test_names_that_would_steer_the_terminal_are_refused(cli):
    c = write(cli, "c.csv", curve(10))
    for name in ("ev\x1b[31mil", os.fsdecode(b"\xff"), "two\nlines", "", "x" * 64):
        assert "not a name of 1 to 63 printable bytes" in cli.fails("import", name, c, status=2)
    assert not cli.db.exists()
    cli.run("import", "größe", c)
    assert [t["name"] for t in cli.json("status")["targets"]] == ["größe"]


def test_paths_that_are_no_text_are_shown_all_the_same(cli):
    odd = os.fsdecode(b"odd\xff\x1b[31m")
    os.rename(cli.folder / write(cli, "c.csv", curve(10)), cli.folder / odd)
    db = ("--db", odd + ".db")
    assert cli.json("import", "api", odd, *db)["file"] == "odd??[31m"
    for verb in (("status",), ("store", "info"), ("store", "verify")):
        assert cli.json(*verb, *db)["store"] == "odd??[31m.db"


def test_a_folder_is_no_file(cli):
    assert "Is a directory" in cli.fails("import", "api", cli.folder, status=3)


def test_requests_without_a_sample_have_no_last_one(cli):
    path = write(cli, "r.csv", f"ts,endpoint,n\n{BASE},/a,3\n")
    cli.json("import", "api", path)
    done = cli.run("status")
    assert " never " in done.stdout
    assert done.stderr == ""

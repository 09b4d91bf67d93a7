"""What is typed wrong: one line that says what, why and what to do; status 2; nothing is touched."""
import pytest

CASES = {
    "no verb": ([], ": no verb is given; lowtide --help lists them"),
    "verb": (["wacth"], ': wacth: no such verb; did you mean "watch"?'),
    "far verb": (["xyzzy"], ": xyzzy: no such verb; lowtide --help lists them"),
    "half verb": (["store"], ": store: only half a verb; write verify or info behind store"),
    "second half": (["store", "verfy"], ": store verfy: no such verb; write verify or info behind store"),
    "option": (["watch", "--intervall", "3s"], "watch: --intervall: no such option; did you mean --interval?"),
    "option before the verb": (["--nonsense"], ": --nonsense: no such option; lowtide --help lists them"),
    "no value": (["watch", "--interval"], "watch: --interval: needs a value; write --interval DURATION"),
    "duration": (["watch", "pid:1", "--interval", "soon"],
                 "watch: --interval soon: not a duration; write one such as 200ms, 30s, 5m, 8h, 7d"),
    "interval": (["watch", "pid:1", "--interval", "1ms"], "watch: --interval 1ms: not between 10ms and 24h; write one such as 30s"),
    "kind": (["mark", "a", "b", "--kind", "deploi"], "mark: --kind deploi: not one of deploy|config|scale|restart|note; did you mean deploy?"),
    "time": (["mark", "a", "b", "--at", "noon"],
             "mark: --at noon: not a time; write one such as 2026-11-30T20:30:00Z, epoch seconds, or 2h for two hours ago"),
    "missing": (["mark", "api"], "mark: TEXT: is missing; lowtide help mark shows the form"),
    "too many": (["status", "a", "b"], "status: b: one argument too many; lowtide help status shows the form"),
    "no target": (["watch"], "watch: no target is given; write --target NAME=SELECTOR, or a selector such as port:8000"),
    "tmp": (["watch", "pid:1", "--tmp", "tmp"], "watch: --tmp tmp: not an absolute path; write one such as /tmp"),
    "same name": (["watch", "a=pid:1", "--target", "a=pid:2"],
                  "watch: a: two targets of that name; give each its own with --target NAME=SELECTOR"),
    "help": (["help", "wacth"], 'help: wacth: no such verb; did you mean "watch"?'),
    "shell": (["completion", "fish"], "completion: fish: no completion for that shell; write bash or zsh"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line(cli, name):
    args, line = CASES[name]
    assert cli.fails(*args, status=2) == line.removeprefix(" ")
    assert list(cli.folder.iterdir()) == []


@pytest.mark.parametrize("selector", ["nonsense:1", "port:http", "port:70000", "pid:-4", "pid:", "cmd:(", "cgroup:", "1x"])
def test_selectors(cli, selector):
    for args in (["watch", "--target", "api=" + selector], ["watch", selector]):
        line = cli.fails(*args, status=2)
        assert selector in line
        assert line.count(": ") >= 2 and "; " in line
    assert list(cli.folder.iterdir()) == []


def test_config_names_file_line_and_key(cli):
    path = cli.folder / "watch.yaml"
    path.write_text("target: [api=port:8000]\ninterval: 30s\n\nintervall: 5s\n")
    assert cli.fails("watch", "--config", path, status=2) == f"watch: {path}:4: intervall: no such key; did you mean interval?"
    path.write_text("watch:\n  target: [api=port:8000]\n  interval: fast\n")
    line = cli.fails("watch", "--config", path, status=2)
    assert line == f"watch: {path}:3: interval: fast: not a duration; write one such as 200ms, 30s, 5m, 8h, 7d"


def test_every_option_has_its_key(cli, service):
    path = cli.folder / "watch.yaml"
    path.write_text(f"db: {cli.folder}/other.db\nquiet: true\nwatch:\n  target: {{api: pid:{service.pid}}}\n  interval: 50ms\n  once: true\n"
                    "  tmp: [/tmp]\n  disk-budget: 64MiB\n  keep: 3d\n")
    done = cli.run("watch", "--config", path)
    assert done.stderr == ""
    assert (cli.folder / "other.db").exists() and not cli.db.exists()
    assert cli.run("status", "--db", cli.folder / "other.db").stdout.count("\napi ") == 1


def test_options_stand_anywhere(cli, service):
    cli.run("watch", f"api=pid:{service.pid}", "--once")
    for args in (["--json", "status", "api"], ["status", "--json", "api"], ["status", "api", "--json"], ["--db", cli.db, "status", "--json", "api"]):
        assert cli.run(*args).stdout.startswith("{")
    cli.fails("status", "--", "--json", status=3)  # behind -- it is the name of a target


def test_output_that_cannot_be_written(cli):
    with open("/dev/full", "w") as full:
        done = cli.run("help", status=3, stdout=full)
    assert done.stderr == "lowtide help: standard output: No space left on device; make room and run again\n"


@pytest.mark.parametrize("args", [["help"], ["--help"], ["help", "watch"], ["status"]])
def test_a_closed_pipe_is_quiet(cli, service, args):
    import os
    cli.run("watch", f"api=pid:{service.pid}", "--once")
    r, w = os.pipe()
    os.close(r)
    done = cli.run(*args, stdout=w)
    os.close(w)
    assert done.stderr == ""


def test_a_reader_that_leaves_early_is_no_failure(cli):
    """More than a buffer, so that it is a write in the middle that fails, not the last one."""
    import os
    rows = ["ts,pid,rss_anon"] + [f"{1790000000 + i},{1000 + i},4096" for i in range(300)]
    cli.run("import", "api", "-", "--kind", "curve", input="\n".join(rows) + "\n")
    for args, status in ((["status", "api", "--json"], 0), (["diagnose", "api", "--json"], 3), (["status", "api", "--lives", "300"], 0)):
        r, w = os.pipe()
        os.close(r)
        done = cli.run(*args, status=status, stdout=w)
        os.close(w)
        assert done.stderr == ""
        with open("/dev/full", "w") as full:
            done = cli.run(*args, status=3, stdout=full)
        assert done.stderr.count("\n") == 1 and "Success" not in done.stderr


def test_messages_hold_no_control_bytes(cli):
    line = cli.fails("status", "a\033[31m\nb", "--db", cli.folder / "none.db", status=3)
    assert "\033" not in line
    line = cli.fails("wat\033[31mch\n", status=2)
    assert "\033" not in line

"""Help, man pages, examples and completion: made from the verb tables, run for real."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess

import pytest

from conftest import PATIENCE


def test_help_page(cli, golden):
    done = cli.run("--help")
    golden("cli/help.txt", done.stdout)
    assert cli.run("help").stdout == done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def verbs(cli):
    page = cli.run("man").stdout
    return [line.split()[2].removeprefix("lowtide-") for line in page.splitlines() if line.startswith(".It Xr lowtide-")]


def test_help_of_each_verb(cli):
    names = verbs(cli)
    assert {"watch", "status", "store-verify", "import", "diagnose"} <= set(names)
    for name in names:
        words = name.replace("store-", "store ").split()
        text = cli.run("help", *words).stdout
        assert cli.run(*words, "--help").stdout == text
        assert max(map(len, text.splitlines())) <= 100
        assert "Options of every verb" in text


def test_help_of_watch(cli, golden):
    golden("cli/help-watch.txt", cli.run("help", "watch").stdout)


def test_version(cli, root):
    assert cli.run("--version").stdout == f"lowtide {(pathlib.Path(root) / 'VERSION').read_text().strip()}\n"


def test_man_pages_are_clean(cli):
    """mandoc knows of nothing to complain about but that the pages are not installed yet."""
    pages = cli.folder / "man1"
    cli.run("man", "--all", pages)
    assert {p.name for p in pages.iterdir()} == {"lowtide.1", *(f"lowtide-{v}.1" for v in verbs(cli))}
    done = subprocess.run(["mandoc", "-Tlint", "-W", "all", *sorted(pages.iterdir())], capture_output=True, text=True)
    said = [line for line in done.stdout.splitlines() if "referenced manual not found" not in line]
    assert said == []
    shown = subprocess.run(["mandoc", "-Tutf8", pages / "lowtide-watch.1"], capture_output=True, text=True)
    assert shown.returncode == 0 and "interval" in shown.stdout


def test_man_folder_that_cannot_be_made(cli):
    assert cli.fails("man", "--all", "/proc/none", status=3) == "man: /proc/none: No such file or directory; choose another folder"


# ---- every example of every page runs ------------------------------------------------------------------------------

ENDLESS = ("lowtide watch --target api=port:8000",)


def example_commands(binary):
    out = subprocess.run([binary, "__examples"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[:2] for line in out.splitlines()]


def test_examples_exist_for_every_verb(cli, lowtide):
    have = {verb for verb, _ in example_commands(lowtide)}
    assert have >= {v.replace("store-", "store ") for v in verbs(cli)}


def stage(cli, service, lowtide):
    """What examples speak of: the target api with samples, files in the folder, lowtide in PATH, port 8000, process 1234."""
    bin_folder = cli.folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "lowtide").symlink_to(lowtide)
    cli.env["PATH"] = f"{bin_folder}:{os.environ['PATH']}"
    port = service.do("listen()")
    base = 1796000000
    (cli.folder / "curve.csv").write_text("".join(f"{base + 30 * i},{200000 + i},{20 + i % 3},8,0\n" for i in range(3000)))
    (cli.folder / "requests.csv").write_text("ts,endpoint,n\n" + "".join(f"{base + 30 * i},/chat,{10 + i % 7}\n" for i in range(3000)))
    (cli.folder / "events.csv").write_text(f"ts,kind,text\n{base + 40000},deploy,v1.42\n")
    cli.watch(f"api=pid:{service.pid}", "--interval", "50ms")
    return {"8000": str(port), "1234": str(service.pid)}


def run_example(cli, command, replace):
    """A watch gets a store of its own: the staged one has its watcher already."""
    words = [replace.get(w, w) for w in shlex.split(command.split(" < ")[0].split(" > ")[0])]
    words = [w.replace("port:8000", "port:" + replace["8000"]).replace("pid:1234", "pid:" + replace["1234"]) for w in words]
    line = shlex.join(words) + command[len(command.split(" < ")[0].split(" > ")[0]):]
    limit = ["timeout", "-s", "INT", "3"] if command in ENDLESS or words[1] == "doctor" else []
    # timeout's own status is that of the command only when the command ends by itself: --preserve-status
    wrap = [*limit[:1], "--preserve-status", *limit[1:]] if limit else []
    env = cli.environment(**({"LOWTIDE_DB": cli.folder / "watch.db"} if words[1] == "watch" else {}))
    return subprocess.run([*wrap, "bash", "-c", f"exec {line}"], env=env, cwd=cli.folder, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=2 * PATIENCE)


def test_examples_run(cli, service, lowtide):
    replace = stage(cli, service, lowtide)
    wrong = []
    for verb, command in example_commands(lowtide):
        done = run_example(cli, command, replace)
        judges = verb in ("diagnose", "doctor")
        if done.returncode not in ((0, 1, 3) if judges else (0,)) or "AddressSanitizer" in done.stderr:
            wrong.append(f"{command}: status {done.returncode}: {done.stderr}")
        if "--json" in command:
            json.loads(done.stdout)
    assert wrong == []


# ---- completion ----------------------------------------------------------------------------------------------------

COMPLETE = r"""
source completion.bash
complete -p lowtide
COMP_LINE=$1 COMP_POINT=${#1}
eval "$(python3 - "$1" <<'PY'
import re, shlex, sys
line = sys.argv[1]
# as readline: words end at blanks, and = and : are words of their own
words = [w for part in re.split(r"[ ]+", line) for w in (re.findall(r"[=:]+|[^=:]+", part) or [""])]
print("COMP_WORDS=(" + " ".join(shlex.quote(w) for w in words) + ")")
PY
)"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_lowtide lowtide
printf '%s\n' "${COMPREPLY[@]}"
"""


def offered(cli, line):
    """What bash offers for a TAB behind the line."""
    done = subprocess.run(["bash", "--norc", "-c", COMPLETE, "bash", line], env=cli.environment(), cwd=cli.folder, capture_output=True,
                          text=True)
    head, *words = done.stdout.splitlines()
    assert head == "complete -F _lowtide lowtide", done.stderr
    return [w for w in words if w]


@pytest.fixture
def bash(cli, service, lowtide):
    stage(cli, service, lowtide)
    (cli.folder / "completion.bash").write_text(cli.run("completion", "bash").stdout)
    return cli


def test_bash_completion(bash, service):
    assert offered(bash, "lowtide wat") == ["watch"]
    assert offered(bash, "lowtide store ") == ["verify", "info"]
    assert offered(bash, "lowtide help st") == ["status", "store"]
    assert offered(bash, "lowtide watch --int") == ["--interval"]
    assert offered(bash, "lowtide --db x watch --once --on") == []  # given already
    assert offered(bash, "lowtide import api f --kind ") == ["curve", "requests", "events"]
    assert offered(bash, "lowtide import api f --kind=re") == ["requests"]
    assert offered(bash, "lowtide watch --target api=po") == ["port:"]
    assert offered(bash, "lowtide watch --target=api=unit") == ["unit:"]
    assert offered(bash, "lowtide import api cur") == ["curve.csv"]
    assert offered(bash, "lowtide watch --tmp b") == ["bin"]
    assert offered(bash, "lowtide completion ") == ["bash", "zsh"]


def test_bash_completes_targets_and_pids(bash, service):
    assert offered(bash, "lowtide status a") == ["api"]
    assert offered(bash, f"lowtide status --db {bash.folder}/none.db a") == []
    assert str(service.pid) in offered(bash, "lowtide doctor ")
    assert offered(bash, f"lowtide watch --target api=pid:{service.pid}") == [str(service.pid)]


def test_zsh_completion(bash):
    """The answers for zsh are whole words; the script is one that zsh can read."""
    answer = bash.run("__complete", "zsh", "--", "lowtide import api f --kind=re").stdout
    assert answer == "words\n--kind=requests\n"
    script = bash.folder / "_lowtide"
    script.write_text(bash.run("completion", "zsh").stdout)
    assert script.read_text().startswith("#compdef lowtide\n")
    if shutil.which("zsh"):
        assert subprocess.run(["zsh", "-n", script], capture_output=True, text=True).stderr == ""


ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f -i
settle() { local x; sleep 0.2; while zpty -r -t z x; do out+=$x; done }
until_seen() { out=; for i in {1..300}; do settle; [[ $out == *$1* ]] && return; done }
zpty -w z "PS1=; path=($PWD/bin \$path); fpath=($PWD \$fpath); autoload -U compinit; compinit -u -D; echo REA''DY"
until_seen READY
zpty -w -n z "lowtide import api f --kind=re"$'\t'
until_seen requests
print -r -- $out
zpty -d z
"""


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completes_for_real(bash):
    (bash.folder / "_lowtide").write_text(bash.run("completion", "zsh").stdout)
    done = subprocess.run(["zsh", "-f", "-c", ZSH], env=bash.environment(), cwd=bash.folder, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert "--kind=requests" in done.stdout

"""The Debian package, for real: built, installed, run, removed, purged. Root only, and only where lowtide is not installed."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
ENV = {**os.environ, "PATH": SYSTEM_PATH, "DEBIAN_FRONTEND": "noninteractive"}
ENV.pop("LOWTIDE_DB", None)
STORE = pathlib.Path("/var/lib/lowtide/lowtide.db")
UNIT = pathlib.Path("/lib/systemd/system/lowtide-watch.service")
LEFT_AFTER_PURGE = [
    "/usr/bin/lowtide", "/etc/lowtide", "/var/lib/lowtide", str(UNIT), "/usr/share/doc/lowtide",
    "/etc/systemd/system/multi-user.target.wants/lowtide-watch.service", "/usr/share/man/man1/lowtide.1.gz",
    "/usr/share/bash-completion/completions/lowtide", "/usr/share/zsh/vendor-completions/_lowtide",
]


def run(*argv, **kwargs):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, env=ENV, timeout=600, **kwargs)


def why_not():
    if os.geteuid() != 0:
        return "installing a package takes root"
    for tool in ("dpkg", "dpkg-buildpackage", "dh", "lintian"):
        if not shutil.which(tool, path=SYSTEM_PATH):
            return f"{tool} is not installed"
    if run("dpkg-query", "-W", "lowtide").returncode == 0:
        return "a lowtide package is installed here: it is not touched"
    if os.path.exists("/var/lib/lowtide") or os.path.exists("/etc/lowtide"):
        return "/var/lib/lowtide or /etc/lowtide exists: it is not touched"
    return None


# Asked when the test runs, not when it is collected: the answer may change in between.
@pytest.fixture(scope="module")
def package():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    built = run(ROOT / "scripts" / "deb")
    assert built.returncode == 0, built.stdout + built.stderr
    name = built.stdout.split()[0]
    yield ROOT / name
    run("dpkg", "--purge", "lowtide")


def test_package_lives_its_whole_life(package):
    assert package.name.startswith("lowtide_" + (ROOT / "VERSION").read_text().strip())

    done = run("dpkg", "-i", package)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (ROOT / "VERSION").read_text().strip() in run("/usr/bin/lowtide", "--version").stdout

    once = run("/usr/bin/lowtide", "watch", "--once", "--target", f"self=pid:{os.getpid()}")
    assert once.returncode == 0, once.stderr
    assert STORE.exists()
    assert "self" in run("/usr/bin/lowtide", "status").stdout

    assert run("dpkg", "--verify", "lowtide").stdout == ""
    assert run("man", "-w", "lowtide").stdout.strip() == "/usr/share/man/man1/lowtide.1.gz" or not shutil.which("man")

    assert run("dpkg", "-r", "lowtide").returncode == 0
    assert not os.path.exists("/usr/bin/lowtide")
    assert STORE.exists(), "removing a package must not delete data"

    assert run("dpkg", "--purge", "lowtide").returncode == 0
    assert [p for p in LEFT_AFTER_PURGE if os.path.lexists(p)] == []


def test_work_tree_is_left_clean(package):
    assert not (ROOT / "debian").exists()
    if (ROOT / ".git").exists():
        status = run("git", "-C", ROOT, "-c", f"safe.directory={ROOT}", "status", "--porcelain", "--", "debian", "packaging")
        assert status.stdout == ""


def test_unit_is_sound_and_does_not_start_without_targets(package, tmp_path):
    listing = run("dpkg-deb", "-x", package, tmp_path)
    assert listing.returncode == 0, listing.stderr
    unit = tmp_path / str(UNIT)[1:]
    text = unit.read_text()
    assert "ConditionPathExists=/etc/lowtide/watch.yaml" in text
    assert not (tmp_path / "etc/lowtide/watch.yaml").exists()
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    # verify wants the program and the man pages to exist: those of the extracted package stand in for the installed ones.
    checked = tmp_path / "lowtide-watch.service"
    checked.write_text(text.replace("/usr/bin/lowtide", str(tmp_path / "usr/bin/lowtide")))
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", str(checked)], capture_output=True, text=True, env=ENV)
    assert verified.returncode == 0 and verified.stderr == "", verified.stderr
    rated = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=35", str(checked)],
                           capture_output=True, text=True, env=ENV)
    assert rated.returncode == 0, rated.stdout[-400:]

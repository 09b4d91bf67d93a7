"""`make install` with PREFIX and DESTDIR: everything lands there, nothing elsewhere, and what landed works."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

EXPECTED = [
    "bin/lowtide", "share/man/man1/lowtide.1", "share/man/man1/lowtide-watch.1", "share/bash-completion/completions/lowtide",
    "share/zsh/site-functions/_lowtide", "lib/systemd/system/lowtide-watch.service", "share/doc/lowtide/examples/watch.yaml",
]


def not_sources(folder, names):
    top = {n for n in names if n in (".git", ".venv", ".cache") or n.startswith("build")} if pathlib.Path(folder) == ROOT else set()
    return top | {n for n in names if n == "__pycache__"}


def install(tree, prefix, destdir):
    """In a copy of the tree, so that the build folder others use keeps its prefix."""
    env = {**os.environ, "LOWTIDE_SETUP": "no", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    return subprocess.run(["make", "-C", str(tree), "install", f"PREFIX={prefix}", f"DESTDIR={destdir}"],
                          capture_output=True, text=True, env=env, timeout=600)


def test_install(tmp_path):
    tree, dest = tmp_path / "tree", tmp_path / "dest"
    shutil.copytree(ROOT, tree, ignore=not_sources, symlinks=True)
    done = install(tree, "/opt/lowtide", dest)
    assert done.returncode == 0, done.stdout + done.stderr

    prefix = dest / "opt/lowtide"
    assert [name for name in EXPECTED if not (prefix / name).is_file()] == []
    assert [p.name for p in dest.iterdir()] == ["opt"]
    assert (ROOT / "VERSION").read_text().strip() in subprocess.run([prefix / "bin/lowtide", "--version"], capture_output=True, text=True).stdout
    assert "ExecStart=/opt/lowtide/bin/lowtide watch" in (prefix / EXPECTED[5]).read_text()
    built = subprocess.run([prefix / "bin/lowtide", "completion", "bash"], capture_output=True, text=True).stdout
    assert (prefix / EXPECTED[3]).read_text() == built

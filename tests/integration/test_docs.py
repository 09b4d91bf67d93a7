"""The documents tell the truth: links lead somewhere, named files exist, commands exist, the Chinese twin keeps step."""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = {".git", ".venv", ".cache", "node_modules", "__pycache__"}
DOCS = sorted(p for p in ROOT.rglob("*.md") if not any(part in SKIP or part.startswith("build") for part in p.relative_to(ROOT).parts))
TOP = "src|tests|bench|scripts|docs|man|packaging|include"


def ids(path):
    return str(path.relative_to(ROOT))


def without_code(text):
    return re.sub(r"^( {4,}.*|```.*?^```)$", "", text, flags=re.M | re.S)


@pytest.mark.parametrize("doc", DOCS, ids=ids)
def test_links_lead_somewhere(doc):
    dead = []
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", without_code(doc.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = doc.parent / path if path else doc
        if not file.exists():
            dead.append(target)
        elif anchor and anchor not in anchors(file):
            dead.append(target)
    assert dead == []


def anchors(file):
    """GitHub's anchors of a document's headings."""
    heads = re.findall(r"^#+ (.*)$", file.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("doc", DOCS, ids=ids)
def test_named_files_exist(doc):
    missing = []
    for name in re.findall(rf"`((?:{TOP})/[\w./-]*)`", doc.read_text()):
        if re.search(r"\b[A-Z]{2,}\b(?!\.md)", name):  # placeholders: src/cmd/VERB.c
            continue
        if not (ROOT / name).exists():
            missing.append(name)
    assert missing == []


def code_blocks(doc):
    return re.findall(r"^```.*?^```$", (ROOT / doc).read_text(), flags=re.M | re.S)


def shown_commands(doc):
    lines = [line.strip().removeprefix("$ ") for block in code_blocks(doc) for line in block.splitlines()[1:-1]]
    return [line for line in lines if re.match(r"(make|lowtide|scripts/\S+|build/lowtide|sudo (make|lowtide))\b", line)]


@pytest.mark.parametrize("doc", ["README.md", "CONTRIBUTING.md"])
def test_shown_commands_exist(doc):
    makefile = (ROOT / "Makefile").read_text()
    verbs = set(re.findall(r"extern const struct cmd ([^;]*);", (ROOT / "src/cmd/cmd.c").read_text())[0].replace("\n", " ").split())
    verbs = {v.strip(",").removeprefix("cmd_").replace("_", " ") for v in verbs}
    unknown = []
    commands = shown_commands(doc)
    assert commands, f"{doc} shows no command: the test would prove nothing"
    for command in commands:
        words = command.split("#")[0].split()
        words = words[1:] if words[0] == "sudo" else words
        if words[0] == "make":
            unknown += [w for w in words[1:] if "=" not in w and not re.search(rf"^{w}:|\b{w}\b.*:", makefile, flags=re.M)]
        elif words[0].endswith("lowtide"):
            rest = [w for w in words[1:] if not w.startswith("-")]
            if rest and rest[0] not in verbs and " ".join(rest[:2]) not in verbs:
                unknown.append(command)
        elif not (ROOT / words[0]).exists():
            unknown.append(words[0])
    assert unknown == []


def test_chinese_twin_keeps_step():
    english, chinese = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
    levels = [[len(h) for h in re.findall(r"^(#+) ", without_code(t), flags=re.M)] for t in (english, chinese)]
    assert levels[0] == levels[1]
    assert code_blocks("README.md") == code_blocks("README.zh-CN.md")
    links = [sorted(set(re.findall(r"\]\(([^)]+)\)", t)) - {"README.md", "README.zh-CN.md"}) for t in (english, chinese)]
    assert links[0] == links[1]


def architecture_table():
    """{folder: set of folders it may include} of the table in ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("| folder | may include |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "---" not in line and line]
    return {folder.strip("`"): set(re.findall(r"`([^`]+)`", allowed)) for folder, allowed in rows}


def script_table():
    """The same of scripts/check-includes."""
    loader = importlib.machinery.SourceFileLoader("check_includes", str(ROOT / "scripts/check-includes"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_includes", loader))
    loader.exec_module(module)
    return {folder: set(allowed) for folder, allowed in module.ALLOWED.items()}


def test_include_table_is_the_one_that_is_checked():
    assert architecture_table() == script_table()


def test_functions_of_the_journey_are_where_it_says():
    """`name` ([file](file)): the function must be defined in that file; other `name`s of a step in any file that step links."""
    journey = (ROOT / "ARCHITECTURE.md").read_text().split("## One sample's journey")[1]
    steps = re.split(r"^\d+\. ", journey, flags=re.M)[1:]
    assert len(steps) >= 12
    lost = []
    for step in steps:
        for name, file in re.findall(r"`(\w+)`\s+\(\[([^\]]+)\]", step):
            if not re.search(rf"^[a-z].*\b{name}\(", (ROOT / file).read_text(), flags=re.M):
                lost.append((name, file))
        files = [ROOT / f for f in re.findall(r"\(\[([^\]]+)\]", step)]
        text = "".join(p.read_text() for f in files for p in f.parent.glob("*.c"))
        lost += [n for n in re.findall(r"`([a-z]+_\w+)`", step)
                 if not re.search(rf"\b{n}\(", text) and f'"{n}"' not in (ROOT / "src/base/metric.h").read_text()]
    assert lost == []


def test_version_is_in_step():
    version = (ROOT / "VERSION").read_text().strip()
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    changelog = subprocess.run(["head", "-n", "1", str(ROOT / "packaging/debian/changelog")], capture_output=True, text=True)
    assert f"({version})" in changelog.stdout

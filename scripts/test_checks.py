#!/usr/bin/env python3
"""The checks can fail: each is run on a small sound tree, then with one breach planted; and the counting of scripts/test."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
import csource  # noqa: E402

SOUND = {
    "src/base/err.h": "#ifndef LT_BASE_ERR_H\n#define LT_BASE_ERR_H\nint err(void);\n#endif\n",
    "src/base/err.c": '#include "base/err.h"\n/* malloc(1) in a comment */\nint err(void)\n{\n    return "free(x)"[0];\n}\n',
    "src/base/README.md": "base\n",
    "src/source/sample.h": "#ifndef LT_SOURCE_SAMPLE_H\n#define LT_SOURCE_SAMPLE_H\n#endif\n",
    "src/source/README.md": "source\n",
    "src/store/store.c": '#include <sqlite3.h>\n#include "base/err.h"\n#include "source/sample.h"\nint store(void)\n{\n    return err();\n}\n',
    "src/store/README.md": "store\n",
    "src/analysis/rise.c": "static const int table[] = { 1 };\nint rise(void)\n{\n    return table[0];\n}\n",
    "src/analysis/README.md": "analysis\n",
    "src/cmd/top.c": '#include "store/store.h"\nint top(void)\n{\n    printf("x");\n    return 0;\n}\n',
    "src/cmd/README.md": "cmd\n",
    "tests/lib/harness.c": '#include "base/err.h"\nint h(void)\n{\n    return open("x", 0);\n}\n',
}


def run(check, changes):
    """The check on the sound tree with these files added or changed: (exit status, output)."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**SOUND, **changes}.items():
            file = pathlib.Path(root, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        done = subprocess.run([sys.executable, SCRIPTS / check, root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def body(lines):
    return "int f(void)\n{\n" + "    f();\n" * lines + "    return 0;\n}\n"


BREACHES = {
    "check-includes": [
        ({"src/base/x.c": '#include "source/sample.h"\n'}, "src/base/x.c:1: base/ may not include source/"),
        ({"src/store/x.c": '#include "source/source.h"\n'}, "of source/, store/ may include only source/sample.h"),
        ({"src/store/x.c": '#include "cmd/cmd.h"\n'}, "store/ may not include cmd/"),
        ({"src/source/x.c": "#include <sqlite3.h>\n"}, "sqlite3.h is for store"),
        ({"src/base/x.c": '#include "err.h"\n'}, "include as"),
        ({"src/base/x.c": '#include "lib/harness.h"\n'}, "tests/lib is for tests"),
        ({"src/util/x.c": "\n"}, "src/util/ is not in the table"),
        ({"src/base/x.c": '#include "nowhere/x.h"\n'}, "there is no folder nowhere/"),
        ({"bench/x.c": '  #  include "cmd/cmd.h"\n'}, "bench/x.c:1: nobody includes cmd/"),
    ],
    "check-size": [
        ({"src/base/x.c": body(80)}, "src/base/x.c:1: f has 84 lines, the limit is 80"),
        ({"src/base/x.c": "int x;\n" * 801}, "801 lines, the limit is 800"),
        ({"src/base/x.h": "int x;\n" * 201, "src/cmd/x.c": '#include "base/x.h"\n'}, "src/base/x.h: 201 lines, the limit is 200"),
        ({"src/base/x.h": "int x;\n" * 801}, "src/base/x.h: 801 lines, the limit is 800"),
        ({f"src/base/x{i}.c": body(30) for i in range(20)}, "the median function has 34 lines"),
    ],
    "check-banned": [
        ({"src/base/x.c": "void f(void)\n{\n    free(0);\n}\n"}, "src/base/x.c:3: free() is banned here"),
        ({"src/base/x.c": "int f(void)\n{\n    return openat (1, 0, 0);\n}\n"}, "openat() is banned here"),
        ({"tests/x.c": "int f(void) { return system(0); }\n"}, "tests/x.c:1: system() is banned here"),
        ({"src/base/x.c": "int f(void) { return socket(1, 2, 3); }\n"}, "socket() without SOCK_CLOEXEC"),
        ({"src/base/x.c": "void f(void) { printf(0); }\n"}, "printf() is banned here: only cmd/ and output/ print"),
        ({"src/analysis/x.c": "long f(void) { return clock_wall_ns(); }\n"}, "clock_wall_ns() in a pure folder"),
        ({"src/analysis/x.c": "static int calls;\n"}, "state between calls in a pure folder"),
        ({"src/analysis/x.c": "int f(void)\n{\n    static long last = 0;\n    return 0;\n}\n"}, "state between calls"),
        ({"src/base/x.c": "int f(void) { return clock_gettime(0, 0); }\n"}, "clock_gettime() is banned here"),
    ],
    "check-style": [
        ({"src/base/x.c": "int x;\n\tint y;\n"}, "src/base/x.c:2: a tab"),
        ({"src/base/x.c": "int x; \n"}, "blanks at the end"),
        ({"src/base/x.c": "int x;\r\n"}, "CRLF"),
        ({"src/base/x.c": "int x;"}, "no newline at the end of the file"),
        ({"src/base/x.c": "//" + "x" * 160 + "\n"}, "162 columns"),
        ({"src/base/x.h": "int x;\n"}, "the include guard should be LT_FOLDER_X_H"),
        ({"src/base/str_utils.c": "int x;\n"}, "the name says nothing"),
        ({"src/base/x.c": "typedef struct { int x; } x;\n"}, "a typedef hides a struct"),
        ({"src/series/x.c": "int x;\n"}, "src/series:1: no README.md"),
    ],
}


class Checks(unittest.TestCase):
    def test_sound_tree_passes(self):
        for check in BREACHES:
            with self.subTest(check):
                status, out = run(check, {})
                self.assertEqual(status, 0, out)

    def test_every_breach_is_found(self):
        for check, cases in BREACHES.items():
            for changes, says in cases:
                with self.subTest(check, says=says):
                    status, out = run(check, changes)
                    self.assertEqual(status, 1, out)
                    self.assertIn(says, out)

    def test_empty_tree_is_a_failure(self):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "src").mkdir()
            for check in BREACHES:
                with self.subTest(check):
                    done = subprocess.run([sys.executable, SCRIPTS / check, root], capture_output=True)
                    self.assertEqual(done.returncode, 1)


class Functions(unittest.TestCase):
    def test_found_with_their_lines(self):
        text = ("#define M(x) { \\\n  x }\nstruct s { int a; };\nstatic const int t[] = { 1,\n 2 };\n"
                "__attribute__((format(printf, 1, 2)))\nstatic int\none(int a)\n{\n    if (a) {\n    }\n    return '{';\n}\n"
                "LIST(X(one))\nvoid two(int (*f)(int), int b) { }\n")
        self.assertEqual([f for f in csource.functions(text)], [("one", 6, 13), ("two", 14, 15)])


def load(script):
    loader = importlib.machinery.SourceFileLoader(script.replace("-", "_"), str(SCRIPTS / script))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


class Counting(unittest.TestCase):
    """scripts/test: what crashed, or did not run at all, has to count as failed."""

    @classmethod
    def setUpClass(cls):
        cls.test = load("test")

    def meson(self, *rows):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "testlog.json")
            log.write_text("".join(json.dumps({"name": "t", **row}) + "\n" for row in rows))
            count = self.test.count_meson(log)
            self.skipped = count.skipped
            return count.passed, count.failed

    def test_meson(self):
        ok = {"result": "OK", "stdout": "harness: 5 passed, 0 failed\n"}
        self.assertEqual(self.meson(ok, {"result": "OK", "stdout": ""}), (6, 0))
        self.assertEqual(self.meson(ok, {"result": "FAIL", "stdout": "harness: 3 passed, 2 failed\n"}), (8, 2))
        self.assertEqual(self.meson(ok, {"result": "FAIL", "stdout": "crashed before its last line"}), (5, 1))
        self.assertEqual(self.meson(ok, {"result": "FAIL", "stdout": "harness: 3 passed, 0 failed\n"}), (8, 1))  # a leak at exit
        self.assertEqual(self.meson(ok, {"result": "TIMEOUT", "stdout": ""}), (5, 1))
        self.assertEqual(self.meson(ok, {"result": "OK", "stdout": "harness: 0 passed, 0 failed\n"}), (5, 1))

    def test_meson_skipped(self):
        self.assertEqual(self.meson({"result": "OK", "stdout": "harness: 5 passed, 0 failed, 2 skipped\n"}), (5, 0))
        self.assertEqual(self.skipped, 2)
        self.assertEqual(self.meson({"result": "OK", "stdout": "harness: 0 passed, 0 failed, 2 skipped\n"}, {"result": "OK", "stdout": ""}), (1, 0))

    def test_meson_that_ran_nothing(self):
        self.assertEqual(self.meson(), (0, 1))
        self.assertEqual(self.meson({"result": "SKIP", "stdout": ""}), (0, 1))
        self.assertEqual(self.test.count_meson(pathlib.Path("/nowhere/testlog.json")).failed, 1)

    def junit(self, attributes, status=0):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "pytest.xml")
            log.write_text(f"<testsuites><testsuite {attributes}></testsuite></testsuites>")
            count = self.test.count_pytest(log, status)
            return count.passed, count.failed

    def test_pytest(self):
        self.assertEqual(self.junit('tests="10" failures="0" errors="0" skipped="2"'), (8, 0))
        self.assertEqual(self.junit('tests="10" failures="1" errors="2" skipped="0"', 1), (7, 3))
        self.assertEqual(self.junit('tests="10" failures="0" errors="0" skipped="0"', 3), (10, 1))
        self.assertEqual(self.junit('tests="0" failures="0" errors="0" skipped="0"', 5), (0, 1))
        self.assertEqual(self.junit('tests="2" failures="0" errors="0" skipped="2"', 0), (0, 1))
        self.assertEqual(self.test.count_pytest(pathlib.Path("/nowhere/pytest.xml"), 0).failed, 1)

    def test_last_line(self):
        Count = self.test.Count
        self.assertEqual(self.test.summary([Count(3, 0), Count(4, 1)]), ("7 passed, 1 failed", 1))
        self.assertEqual(self.test.summary([Count(3, 0)]), ("3 passed, 0 failed", 0))
        self.assertEqual(self.test.summary([]), ("0 passed, 1 failed", 1))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    broken = len(result.failures) + len(result.errors)
    print(f"harness: {max(result.testsRun - broken, 0)} passed, {broken} failed")
    sys.exit(1 if broken or not result.testsRun else 0)

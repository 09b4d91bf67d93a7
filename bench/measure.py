"""What every benchmark needs: processes to watch, CPU clocks of others, rows of results."""

import contextlib
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time


class Missing(Exception):
    """A peer or a program cannot run here; the text says why and goes into the report in place of a figure."""


def cpu_seconds(pid):
    """CPU time of a whole process, ns resolution (the kernel's per-process CPU clock)."""
    return time.clock_gettime(((~pid) << 3) | 2)


def statm_rss_bytes(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def process_count():
    return sum(name.isdigit() for name in os.listdir("/proc"))


def row(name, values, unit, target=None, at_most=True, note="", peer=False):
    """One line of the report. `values` are repeated measurements of one thing; the median is judged against `target`."""
    values = sorted(values)
    median = statistics.median(values)
    met = None if target is None else (median <= target if at_most else median >= target)
    return {"name": name, "min": values[0], "median": median, "max": values[-1], "n": len(values), "unit": unit,
            "target": target, "at_most": at_most, "met": met, "note": note, "peer": peer}


def missing(name, why, peer=False):
    return {"name": name, "missing": str(why), "peer": peer}


def add_ratios(rows, ours, wanted=None):
    """Gives every peer's row its ratio to ours, and the ratio that is wanted of it."""
    for r in rows:
        if r["peer"] and "missing" not in r and ours > 0:
            r["ratio"] = r["median"] / ours
            r["wanted_ratio"] = (wanted or {}).get(r["name"])
            if r["wanted_ratio"]:
                r["met"] = r["ratio"] >= r["wanted_ratio"]
    return rows


class Child:
    """A bench program that says "ready PID" and takes commands on stdin; its end of stdin ends it."""

    def __init__(self, *argv):
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline().split()
        if len(first) != 2 or first[0] != "ready":
            self.close()
            raise Missing(f"{os.path.basename(str(argv[0]))} did not start")
        self.pid = int(first[1])

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def children(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
            return [int(p) for p in f.read().split()]

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Watch:
    """`lowtide watch` over the given targets, with a store of its own."""

    def __init__(self, ctx, targets, interval, *more, wrap=()):
        self.folder = tempfile.TemporaryDirectory(prefix="lowtide-bench-")
        self.db = os.path.join(self.folder.name, "bench.db")
        argv = [*wrap, ctx.lowtide, "watch", "--json", "--db", self.db, "--interval", interval]
        for name, selector in targets.items():
            argv += ["--target", f"{name}={selector}"]
        self.out = open(os.path.join(self.folder.name, "out"), "w+")
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen([*argv, *more], stdout=self.out, stderr=self.log)
        self.pid = self.process.pid

    def alive(self):
        if self.process.poll() is None:
            return
        self.log.seek(0)
        raise Missing(f"lowtide watch ended with status {self.process.returncode}: {self.log.read().strip()[:300]}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def summary(self):
        """What the watch says it did, once it has ended: sweeps, samples, cpu_s (of the sweeps) and more."""
        self.stop()
        if self.process.returncode:
            self.alive()
        self.out.seek(0)
        return json.load(self.out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.out.close()
        self.log.close()
        self.folder.cleanup()

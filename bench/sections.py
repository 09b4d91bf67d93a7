"""The benchmarks themselves: each function measures one thing and returns rows (measure.row)."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time

import peers
from measure import Child, Missing, Watch, add_ratios, cpu_seconds, missing, row, statm_rss_bytes

MB = 1 << 20


def json_of(argv, timeout=300):
    """Runs a bench program that prints one JSON document."""
    p = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout)
    if p.returncode:
        raise Missing(f"{os.path.basename(str(argv[0]))}: status {p.returncode}: {p.stderr.strip()[:300]}")
    return json.loads(p.stdout)


# ---- sampling ----------------------------------------------------------------------------------------------------


def watch_us(ctx, load, processes, sweeps):
    """CPU of the whole of `lowtide watch` (reading, coding, writing) per process-sample, in spans of a few sweeps."""
    span = 5
    with Watch(ctx, {"load": f"pid:{load.pid}"}, "1s") as w:
        time.sleep(4)
        values = []
        for _ in range(max(2, sweeps // span)):
            w.alive()
            begin = cpu_seconds(w.pid)
            time.sleep(span)
            values.append((cpu_seconds(w.pid) - begin) / (span * processes) * 1e6)
        return values


def sweep_us(ctx, name, what, *options, target=None):
    """bench-sweep: the sampler alone, in process, once what does not change is looked at seldom. Its mean is the amortised cost."""
    out = subprocess.run([ctx.program("sweep"), "-s", "30" if ctx.quick else "60", *map(str, options)], capture_output=True, text=True)
    if out.returncode:
        raise Missing(f"bench-sweep: status {out.returncode}: {out.stderr.strip()[:200]}")
    found = re.search(r"mean ([\d.]+), min ([\d.]+), median ([\d.]+), max ([\d.]+) us .*; floor ([\d.]+) us; .* (\d+) allocations", out.stdout)
    mean, least, median, most, floor, allocations = (float(x) for x in found.groups())
    r = row(name, [least, mean, most], "us", target,
            note=f"{what}; mean of all sweeps, the ordinary one {median:.2f} us, {allocations:.0f} allocations in the loop; "
            f"the cheapest system calls alone {floor:.2f} us")
    return {**r, "ordinary": median}


def sampling_at(ctx, processes):
    target = 6 if processes == 1000 else None
    alone = ("-n", processes - 1, "-f", 20)
    rows = [
        sweep_us(ctx, f"lowtide, files only ({processes})", "processes sleep, no sockets", *alone, target=target),
        sweep_us(ctx, f"lowtide, files only, busy ({processes})", "every process wakes between sweeps", *alone, "-a", target=target),
    ]
    with Child(ctx.program("load"), processes - 1, 20) as load:
        pids = [load.pid, *load.children()]
        same = sweep_us(ctx, f"lowtide, the peers' processes ({processes})", "they sleep and hold sockets, pipes, files", "-p", load.pid, target=target)
        rows += [same, row(f"lowtide watch, all of it ({processes})", watch_us(ctx, load, processes, 10), "us",
                           note="reading, paths and peers, coding and writing to the store, at 1 s")]
        for name, function, wanted, note in peers.PEERS:
            try:
                r = row(f"{name} ({processes})", function(pids, 3 if ctx.quick else 5), "us", note=note, peer=True)
                r["note"] += f"; {r['median'] / same['ordinary']:,.1f}x our ordinary sweep, which reads as much"
                rows += add_ratios([r], same["median"], {r["name"]: wanted} if processes == 1000 else None)
            except (Missing, OSError, subprocess.CalledProcessError) as why:
                rows.append(missing(f"{name} ({processes})", why, peer=True))
    return rows


def sampling(ctx):
    return sampling_at(ctx, 100) + sampling_at(ctx, 1000)


# ---- watch at 1 s over 1,000 processes -----------------------------------------------------------------------------


def reading_share(ctx, load, long):
    """CPU of one sweep against the interval of 1 s, by the watch's own account; the warm-up, known from a short run, is taken off."""
    with Watch(ctx, {"load": f"pid:{load.pid}"}, "1s", "--duration", "8s") as w:
        w.process.wait()
        short = w.summary()
    sweeps = long["sweeps"] - short["sweeps"]
    return row("CPU for reading", [(long["cpu_s"] - short["cpu_s"]) / sweeps * 100], "%", 1,
               note=f"its own account: {long['samples']:,} samples in {long['sweeps']} sweeps, {long['missed']} missed")


def busy_share(ctx, seconds):
    """CPU of the whole watch when every process wakes between two sweeps and changes its memory: nothing is as it was."""
    with Child(ctx.program("load"), 999, 20, 700) as load, Watch(ctx, {"load": f"pid:{load.pid}"}, "1s") as w:
        time.sleep(15)
        begin_cpu, begin = cpu_seconds(w.pid), time.monotonic()
        time.sleep(seconds)
        w.alive()
        return (cpu_seconds(w.pid) - begin_cpu) / (time.monotonic() - begin) * 100


def watch(ctx):
    seconds = 20 if ctx.quick else 60
    with Child(ctx.program("load"), 999, 20) as load, Watch(ctx, {"load": f"pid:{load.pid}"}, "1s") as w:
        time.sleep(15)
        w.alive()
        rss, begin_cpu, begin = [], cpu_seconds(w.pid), time.monotonic()
        for _ in range(seconds):
            time.sleep(1)
            rss.append(statm_rss_bytes(w.pid))
        w.alive()
        share = (cpu_seconds(w.pid) - begin_cpu) / (time.monotonic() - begin) * 100
        reading = reading_share(ctx, load, w.summary())
    third = len(rss) // 3
    return [
        reading,
        row("CPU in all", [share], "%", 2, note=f"the kernel's account: {seconds} s, 1,000 processes, 20 descriptors each"),
        row("CPU in all, busy", [busy_share(ctx, seconds)], "%", 2, note=f"the same for {seconds} s, every process wakes and changes its memory"),
        row("RSS", [b / MB for b in rss], "MB", 16),
        row("RSS floor, last third minus first", [(min(rss[-third:]) - min(rss[:third])) / 1024], "KB", 256),
    ]


# ---- descriptors ---------------------------------------------------------------------------------------------------


def fds(ctx):
    with Child(ctx.program("load"), 1, 20000) as load:
        d = json_of([ctx.program("fds"), load.children()[0]])
    count = row("fd count", d["count_us"], "us", 2)
    kinds = row("fd kinds, budget 2 ms", d["kinds_us"], "us", 2000, note=f"stated error (90 %): {d['kinds_err']:,} fds")
    return [
        count, *add_ratios([row("  by reading the folder", d["readdir_us"], "us", peer=True)], count["median"]),
        kinds, *add_ratios([row("  by reading every link", d["readlink_us"], "us", peer=True)], kinds["median"]),
        row("counts within the stated error", [d["kinds_within"] * 100], "%", 85, at_most=False, note="84 counts, expected 90 %"),
    ]


# ---- the target's mmap lock ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def smaps_reader(pid):
    p = subprocess.Popen(["sh", "-c", f"while cat /proc/{pid}/smaps_rollup >/dev/null; do sleep 0.1; done"], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        p.kill()
        p.wait()


FORBIDDEN = re.compile(r'"(?:[^"]*/)?(smaps|smaps_rollup|maps|numa_maps|pagemap|map_files|clear_refs)(?:/[^"]*)?"')


def opened_forbidden(ctx, pid):
    """Files under strace that would take the target's mmap lock; and how many opens were seen at all."""
    if not shutil.which("strace"):
        raise Missing("strace is not installed")
    with Watch(ctx, {"t": f"pid:{pid}"}, "100ms", "--duration", "4s",
               wrap=("strace", "-f", "-qq", "-e", "trace=open,openat,openat2,readlink,readlinkat")) as w:
        w.process.wait()
        w.log.seek(0)
        calls = [line for line in w.log if re.search(r"\b(open|openat|openat2|readlink|readlinkat)\(", line)]
    opened = [c for c in calls if f"/proc/{pid}" in c or '"stat' in c]
    if not opened:
        raise Missing("strace saw no read of the target: nothing is proved")
    return [c for c in calls if FORBIDDEN.search(c) and "/proc/self" not in c], len(calls)


def mmap_lock(ctx):
    seconds, rounds = (2, 3) if ctx.quick else (4, 5)
    phases = {
        "idle": lambda pid: contextlib.nullcontext(),
        "lowtide at 10 Hz": lambda pid: Watch(ctx, {"t": f"pid:{pid}"}, "100ms"),
        "smaps_rollup reader at 10 Hz": smaps_reader,
    }
    p999 = {name: [] for name in phases}
    with Child(ctx.program("latency"), 1024) as target:
        for _ in range(rounds):
            for name, around in phases.items():
                with around(target.pid):
                    time.sleep(0.5)
                    p999[name].append(json.loads(target.ask(f"run {seconds}"))["p999_us"])
        rows = [row("mmap+munmap p99.9, idle", p999.pop("idle"), "us", note="1 GB process, 4 KiB pages; rounds interleaved")]
        for name, values in p999.items():
            rows += add_ratios([row(f"mmap+munmap p99.9, {name}", values, "us", peer=True)], rows[0]["median"])
        rows[1].update(target=rows[0]["median"] * 1.2, met=rows[1]["ratio"] <= 1.2)
        try:
            bad, seen = opened_forbidden(ctx, target.pid)
            rows.append(row("opens of maps, smaps, pagemap", [len(bad)], "", 0, note=f"strace saw {seen} opens and readlinks"
                            + (f"; first: {bad[0].strip()}" if bad else "")))
        except Missing as why:
            rows.append(missing("opens of maps, smaps, pagemap", why))
        return rows


# ---- forks, execs, exits -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def memory_cgroup(limit_bytes):
    """A cgroup (v1 or v2) with a memory limit, or None where none can be made."""
    v1, v2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
    base, knob = (v1, "memory.limit_in_bytes") if os.path.isdir(v1) else (v2, "memory.max")
    path = os.path.join(base, f"lowtide-bench-{os.getpid()}")
    try:
        os.mkdir(path)
        with open(os.path.join(path, knob), "w") as f:
            f.write(str(limit_bytes))
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(path)
        yield None
        return
    try:
        yield path
    finally:
        for _ in range(50):
            try:
                os.rmdir(path)
                break
            except OSError:
                time.sleep(0.1)


def events(ctx):
    with memory_cgroup(32 * MB) as cgroup:
        d = json_of([ctx.program("events"), 2000, 20 if ctx.quick else 100, *([cgroup] if cgroup else [])])
    rows = []
    for key, what in (("storm", "forks"), ("storm", "exits"), ("exec_storm", "execs"), ("exec_storm", "exits")):
        seen = d[key][what]
        rows.append(row(f"{what} seen of {d[key]['made']:,} ({key.replace('_', ' ')})", [seen], "", d[key]["made"], at_most=False,
                        note=f"overflows reported: {d[key]['overflows']}" if d[key]["overflows"] else ""))
    for key, what in (("exit", "exit status known after"), ("oom", "OOM kill known after")):
        if key not in d:
            rows.append(missing(what, "no memory cgroup can be made here (root is needed)"))
        elif not d[key]["seen"]:
            rows.append(missing(what, f"none of {d[key]['made']} was reported"))
        else:
            r = row(what, [d[key]["min_ms"], d[key]["p50_ms"], d[key]["max_ms"]], "ms", 100,
                    note=f"p99 {d[key]['p99_ms']:.2f} ms; {d[key]['seen']} of {d[key]['made']} reported, {d[key]['right']} with the right cause"
                    + ("; below 0: before the parent itself knew" if d[key]["min_ms"] < 0 else ""))
            r["met"] = d[key]["max_ms"] <= 100 and d[key]["right"] == d[key]["made"]
            rows.append(r)
    return rows


# ---- the store -----------------------------------------------------------------------------------------------------


def store_rows(argv):
    """bench-store's "name value unit" lines."""
    out = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    if out.returncode:
        raise Missing(f"bench-store: status {out.returncode}: {out.stderr.strip()[:200]}")
    return {m[1]: (float(m[2]), m[3]) for m in re.finditer(r"^(.*?)\s{2,}([\d.]+) *(.*)$", out.stdout, flags=re.M)}


STORE_TARGETS = {"whole file": 1, "whole file, per 20 columns": 5.5, "decode a week at 30 s (scaled)": 10}


def store(ctx):
    """A modelled week of 100 processes (20 when quick), and the same rows in plain SQLite tables."""
    found = store_rows([ctx.program("store"), "--procs", "20" if ctx.quick else "100", "--days", "7"])
    rows = [row(name, [value], unit, STORE_TARGETS.get(name), peer=name.startswith("SQLite")) for name, (value, unit) in found.items()]
    ours = {"bytes/value": found["whole file"][0], "us CPU/process-sample": found["store, write"][0]}
    for r in rows:
        if r["peer"]:
            add_ratios([r], ours[r["unit"]])
    return rows


def csv_import(ctx):
    """Reading a curve of the shell loop's form; memory must not depend on the size of the file."""
    small, large = (20, 100) if ctx.quick else (100, 400)
    program, found = ctx.program("csv"), {}
    for size in (small, large):
        out = subprocess.run([program, str(size)], capture_output=True, text=True)
        if out.returncode:
            raise Missing(f"bench-csv: status {out.returncode}: {out.stderr.strip()[:200]}")
        found[size] = [float(re.search(pattern, out.stdout)[1]) for pattern in (r"(\d+) MB/s", r"(\d+) ns a row", r"memory (\d+) kB")]
    return [
        row("speed, CPU time", [found[s][0] for s in (small, large)], "MB/s", note=f"{found[large][1]:.0f} ns a row"),
        row(f"peak memory at {large} MB less that at {small} MB", [found[large][2] - found[small][2]], "KB", 1024,
            note=f"peak {found[large][2] / 1024:.1f} MB"),
    ]


def diagnose(ctx):
    """Analysis and verdict of a week at 30 s; reading the store is in the section above."""
    out = subprocess.run([ctx.program("diagnose")], capture_output=True, text=True)
    if out.returncode:
        raise Missing(f"bench-diagnose: status {out.returncode}: {out.stderr.strip()[:200]}")
    found = re.findall(r"^(.*?)\s{2,}([\d.]+) ms", out.stdout, flags=re.M)
    if not found:
        raise Missing("bench-diagnose printed no time")
    return [row(name, [float(ms)], "ms", None if name.startswith("all") else 2) for name, ms in found]


# ---- self-watch ----------------------------------------------------------------------------------------------------


def self_watch(ctx):
    """2,880 sweeps (24 h at 30 s) at 20 ms; the watch is one of its own targets."""
    floor = ctx.program("floor")
    with Child(ctx.program("load"), 50, 20) as load:
        with Watch(ctx, {"load": f"pid:{load.pid}"}, "20ms", "--self", "--duration", "57.6s") as w:
            w.process.wait()
            w.summary()
            d = json_of([floor, w.db, "lowtide"])
            recorded = store_rows([ctx.program("store"), w.db])
    rows = []
    for name, unit, scale, allowed in (("rss_anon", "KB", 1024, 16), ("rss", "KB", 1024, 256), ("fds", "", 1, 0), ("threads", "", 1, 0)):
        floors = d[name]
        rows.append(row(f"{name} floor, last eighth minus second", [(floors[-1] - floors[1]) / scale], unit, allowed,
                        note="floors: " + " ".join(f"{f / scale:,.0f}" for f in floors) + (f" {unit}" if unit else "")))
    rows.append(row("sweeps recorded of 2,880", [d["samples"]], "", 2736, at_most=False))
    for name in ("whole file", "whole file, per 20 columns"):
        value, unit = recorded[name]
        rows.append(row(f"what was recorded, {name}", [value], unit, STORE_TARGETS[name], note="52 processes"))
    return rows


SECTIONS = [
    ("sampling", "CPU per process-sample: 100 and 1,000 processes, 20 descriptors each", sampling),
    ("watch", "lowtide watch --interval 1s over 1,000 processes", watch),
    ("fds", "One process with 20,000 descriptors", fds),
    ("mmap", "What a target feels", mmap_lock),
    ("events", "Forks, execs, exits", events),
    ("store", "The store", store),
    ("import", "Reading a long CSV", csv_import),
    ("diagnose", "A verdict on a week of samples", diagnose),
    ("self", "Self-watch over a compressed 24 h", self_watch),
]

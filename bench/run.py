"""Side by side in one run: what Lowtide costs, what others cost, and the ratios. Text on stdout, JSON beside it.

    scripts/bench [--build DIR] [--out DIR] [SECTION ...]

A peer that cannot run here is named with the reason; its row is never left out. Figures judge themselves against the
targets ("ok" or "NOT MET"), but the exit status is 0 whenever everything could be measured: a benchmark is not a test.
"""

import argparse
import json
import os
import platform
import sys
import time

sys.dont_write_bytecode = True
from measure import Missing, missing  # noqa: E402
import sections  # noqa: E402


class Context:
    """Where the programs are."""

    def __init__(self, build, out, quick):
        self.build, self.out, self.quick = os.path.abspath(build), os.path.abspath(out), quick
        self.lowtide = self._find("lowtide", "src/cmd/lowtide")

    def _find(self, *places):
        for place in places:
            path = os.path.join(self.build, place)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
        raise SystemExit(f"bench: {places[-1]} is not in {self.build}; run `make` first")

    def program(self, name, *places):
        """A bench program; Missing when it was not built."""
        for place in (os.path.join("bench", "bench-" + name), *places):
            path = os.path.join(self.build, place)
            if os.access(path, os.X_OK):
                return path
        raise Missing(f"bench-{name} is not built")


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.3f}"


def judged(r):
    if r.get("met") is None:
        return ""
    word = "ok" if r["met"] else "NOT MET"
    if r.get("wanted_ratio"):
        return f"{word} (wanted {r['wanted_ratio']:g}x)"
    return f"{word} (wanted {'<=' if r['at_most'] else '>='} {number(r['target'])})"


def print_row(r):
    if "missing" in r:
        print(f"  {r['name']:<34} not measured: {r['missing']}")
        return
    spread = f"{number(r['min'])} .. {number(r['max'])}" if r["n"] > 1 else ""
    ratio = f"{r['ratio']:,.1f}x" if "ratio" in r else ""
    line = f"  {r['name']:<34} {number(r['median']):>10} {r['unit'] + ('' if len(r['unit']) > 8 else ' ' * (8 - len(r['unit'])))} {spread:<20} {ratio:>9}  {judged(r)}"
    print(line.rstrip())
    if r["note"]:
        print(f"      {r['note']}")


def machine():
    with open("/proc/loadavg") as f:
        load = f.read().split()[0]
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    return {"kernel": platform.release(), "cpu": model, "cpus": os.cpu_count(), "load_1m": float(load),
            "root": os.geteuid() == 0, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def run_section(ctx, name, title, function):
    print(f"\n{title}")
    sys.stdout.flush()
    try:
        rows = function(ctx)
    except Missing as why:
        rows = [missing(name, why)]
    for r in rows:
        print_row(r)
    sys.stdout.flush()
    return {"section": name, "title": title, "rows": rows}


def main():
    names = [s[0] for s in sections.SECTIONS]
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Benchmarks, side by side with peers.")
    parser.add_argument("--build", default="build/meson", help="Meson's folder (default: build/meson)")
    parser.add_argument("--out", default="build/bench", help="where the results go (default: build/bench)")
    parser.add_argument("--quick", action="store_true", help="shorter runs; wider spread")
    parser.add_argument("section", nargs="*", help="of: " + " ".join(names))
    args = parser.parse_args()
    unknown = [s for s in args.section if s not in names]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are: {' '.join(names)}")

    ctx = Context(args.build, args.out, args.quick)
    result = {"machine": machine(), "quick": args.quick, "sections": []}
    m = result["machine"]
    print(f"Linux {m['kernel']}, {m['cpus']} CPUs, {m['cpu']}, load {m['load_1m']:.2f}, {'root' if m['root'] else 'not root'}")
    for name, title, function in sections.SECTIONS:
        if not args.section or name in args.section:
            result["sections"].append(run_section(ctx, name, title, function))

    os.makedirs(ctx.out, exist_ok=True)
    path = os.path.join(ctx.out, "bench.json")
    with open(path, "w") as f:
        json.dump(result, f, indent=2)
        f.write("\n")
    print(f"\nresults: {os.path.relpath(path)}")
    unmeasured = sum("missing" in r for s in result["sections"] for r in s["rows"])
    return 3 if unmeasured else 0


if __name__ == "__main__":
    sys.exit(main())

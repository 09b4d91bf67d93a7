"""python -m scenario.record NAME [--clean] --out DIR: one run, sampled by census.py, as curve.csv and requests.csv.

For looking at a curve, and for tuning verdicts on real data without a watcher. Writes expect.json beside them.
"""
import argparse
import csv
import json
import os
import signal
import tempfile
import time

from scenario.catalogue import BY_NAME, SERIES
from scenario.census import COLUMNS, census, start_time_of
from scenario.stage import Stage

GONE = (FileNotFoundError, ProcessLookupError, KeyError)  # KeyError: a zombie has no VmRSS


def sample(stage, pids, out):
    for pid in pids:
        try:
            row = census(pid, stage.tmp, stage.shm_prefix)
            started = start_time_of(pid)
        except GONE:
            continue
        out.writerow([f"{time.time():.3f}", pid, f"{started:.2f}"] + [row[c] for c in COLUMNS])


def run_life(stage, load, out, pids_of, interval):
    while load.poll() is None:
        sample(stage, pids_of(), out)
        time.sleep(interval)


def join_requests(parts, path):
    with open(path, "w", encoding="utf-8") as out:
        for i, part in enumerate(parts):
            with open(part, encoding="utf-8") as f:
                lines = f.readlines()
            out.writelines(lines if i == 0 else lines[1:])


def record(scenario, fault, out_dir, interval=0.2):
    os.makedirs(out_dir, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lt-record-") as folder, Stage(folder, scenario, fault) as stage, \
            open(os.path.join(out_dir, "curve.csv"), "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow(["ts", "pid", "start_time"] + COLUMNS)
        stage.start_upstream()
        parts = []
        for life in range(scenario.lives):
            stage.start_service()
            parts.append(os.path.join(folder, f"requests-{life}.csv"))
            load = stage.start_load(out=parts[-1], seed=life + 1)
            run_life(stage, load, out, lambda: [stage.service.pid], interval)
            stage.end(stage.service, signal.SIGKILL if life + 1 < scenario.lives else signal.SIGTERM)
        join_requests(parts, os.path.join(out_dir, "requests.csv"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(BY_NAME))
    parser.add_argument("--clean", action="store_true", help="the clean twin")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    scenario = BY_NAME[arguments.name]
    record(scenario, "none" if arguments.clean else scenario.fault, arguments.out)
    expect = {"verdict": "ok", "series": {}, "silent": SERIES} if arguments.clean else \
        {"verdict": scenario.verdict, "series": scenario.expect, "silent": scenario.silent()}
    with open(os.path.join(arguments.out, "expect.json"), "w", encoding="utf-8") as f:
        json.dump(expect, f, indent=2)


if __name__ == "__main__":
    main()

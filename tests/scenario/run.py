"""One whole run: the service under load, watched by the real `lowtide`, and what it said of it.

perform() is what the integration tests assert on. The plain counts of census.py are taken beside the watch, so that a
verdict is only asked for of a leak that is known to be there.
"""
import csv
import json
import os
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass

from scenario.census import census
from scenario.stage import Stage, StageError


@dataclass
class Result:
    before: dict          # census before the load, {} where the target is many processes
    after: dict           # census after the idle tail
    requests: Counter     # (endpoint, outcome) -> count
    status: int           # exit status of diagnose
    document: dict        # its JSON
    watch_status: int
    watch_log: str

    def growth(self, series):
        return self.after[series] - self.before[series]

    def series(self, name):
        return next((s for s in self.document["series"] if s["name"] == name), None)

    def verdict(self, name):
        found = self.series(name)
        return found["verdict"] if found else None


def read_requests(paths):
    counts = Counter()
    for path in paths:
        with open(path, newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                counts[row["endpoint"], row["outcome"]] += int(row["n"])
    return counts


def lowtide_json(binary, db, *arguments):
    done = subprocess.run([binary, *arguments, "--json", "--db", db], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3) or not done.stdout:
        raise StageError(f"lowtide {' '.join(arguments)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.returncode, json.loads(done.stdout)


def start_watch(stage, binary, db, selector):
    return stage.start("watch", [binary, "watch", "--target", f"api={selector}", "--interval", stage.scenario.interval,
                                 "--tmp", stage.tmp, "--db", db])


def selector_of(stage):
    many = stage.scenario.lives > 1 or stage.scenario.workers
    return f"pidfile:{stage.pid_file}" if many else f"pid:{stage.service.pid}"


def wait_for_load(load, watch, stage):
    """The load ends by itself, idle tail included; if the watch ends before it, that is the failure to report."""
    while load.poll() is None:
        if watch and watch.poll() is not None:
            raise StageError(f"lowtide watch ended ({watch.returncode}): {stage.log_tail('watch')}")
        try:
            load.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
    if load.returncode != 0:
        raise StageError("the load failed: " + stage.log_tail("load"))


def count(stage):
    return {} if stage.scenario.workers else census(stage.service.pid, stage.tmp, stage.shm_prefix)


def play_lives(stage, binary, db):
    """Runs the service for as many lives as the scenario has; (before, after, request files, the watch)."""
    watch, parts, before, after = None, [], {}, {}
    for life in range(stage.scenario.lives):
        if life > 0:
            stage.end(stage.service, signal.SIGKILL)
        stage.start_service()
        if stage.scenario.warm:
            warm = stage.start_load(seconds=stage.scenario.warm, idle=0, out=os.path.join(stage.folder, "warm.csv"), seed=99)
            wait_for_load(warm, None, stage)
        watch = watch or start_watch(stage, binary, db, selector_of(stage))
        before = before or count(stage)
        parts.append(os.path.join(stage.folder, f"requests-{life}.csv"))
        wait_for_load(stage.start_load(out=parts[-1], seed=life + 1), watch, stage)
        after = count(stage)
    return before, after, parts, watch


def perform(scenario, fault, folder, binary):
    db = os.path.join(folder, "lowtide.db")
    with Stage(folder, scenario, fault) as stage:
        stage.start_upstream()
        before, after, parts, watch = play_lives(stage, binary, db)
        stage.end(watch, signal.SIGINT)
        stage.end(stage.service)
        for part in parts:
            lowtide_json(binary, db, "import", "api", part, "--kind", "requests")
        status, document = lowtide_json(binary, db, "diagnose", "api", "--steady")
        return Result(before, after, read_requests(parts), status, document, watch.returncode, stage.log_tail("watch"))

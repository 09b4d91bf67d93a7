"""The demo's two acts: a leaky service, then its clean twin, each watched by the real `lowtide` under the same traffic.

Run by scripts/demo through janitor.py, which gives the folder (LT_STAGE_FOLDER) and takes everything down afterwards.
Ends with 0 only when the leaky service was found out and its clean twin was not accused.
"""
import json
import os
import signal
import subprocess
import sys
import time

from scenario.catalogue import TRAFFIC, Scenario
from scenario.load.generator import Call
from scenario.stage import Stage, StageError

TRAFFIC["demo"] = [
    Call("POST /v1/chat", 4, text_bytes=800),
    Call("POST /v1/stream", 2, stream=True, cancel=0.25),
    Call("POST /v1/speak", 2),
    Call("POST /v1/embed", 2),
    Call("POST /v1/index", 1),
    Call("POST /v1/attach", 1, fail=0.1),
    Call("GET /healthz", 1),
]
FAULT = "client-per-request:every=4,temp-files"
SCENARIO = Scenario("demo", FAULT, "demo", [], expect={"fds": ("leak",), "sockets": ("leak",), "tmpfiles": ("leak",)},
                    free=("connections", "rss_anon", "tmp_bytes"), rate=60.0, seconds=48.0, idle=5.0)
INTERVAL = "0.2s"


def say(text):
    print(text, flush=True)


class Act:
    """One service, watched from its start to the end of the traffic."""

    def __init__(self, stage, lowtide, target):
        self.stage, self.target = stage, target
        self.lowtide = lowtide

    def run_verb(self, verb, *arguments):
        db = os.path.join(self.stage.folder, "lowtide.db")
        command = [self.lowtide, verb, *arguments, "--db", db]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def watch(self):
        stage = self.stage
        return stage.start("watch", [
            self.lowtide, "watch", "--target", f"{self.target}=pid:{stage.service.pid}", "--interval", INTERVAL,
            "--tmp", stage.tmp, "--db", os.path.join(stage.folder, "lowtide.db")])

    def follow(self, load, watch):
        """Says every ten seconds how far it is; ends with the load."""
        start, told = time.monotonic(), 0
        while load.poll() is None:
            if watch.poll() is not None:
                raise StageError("lowtide watch ended:\n" + self.stage.log_tail("watch"))
            seconds = int(time.monotonic() - start)
            if seconds >= told + 10:
                told = seconds - seconds % 10
                say(f"  {told:3d} s  {self.progress(seconds)}")
            time.sleep(0.2)
        if load.returncode != 0:
            raise StageError("the load ended badly:\n" + self.stage.log_tail("load"))

    def progress(self, seconds):
        s = self.stage.scenario
        if seconds > s.seconds:
            return "traffic has stopped, still watching"
        fds = len(os.listdir(f"/proc/{self.stage.service.pid}/fd"))
        return f"about {int(seconds * s.rate):,} requests; {fds} descriptors, {len(os.listdir(self.stage.tmp))} temp files"

    def play(self):
        stage = self.stage
        stage.start_upstream()
        service = stage.start_service()
        watch = self.watch()
        self.follow(stage.start_load(), watch)
        stage.end(watch, signal.SIGINT)
        stage.end(service)
        outcome = json.loads(stage.log_tail("load").splitlines()[-1])["outcomes"]
        say(f"  traffic: {sum(outcome.values()):,} requests ({', '.join(f'{n:,} {k}' for k, n in sorted(outcome.items()))})")

    def verdict(self):
        """(exit status of diagnose, its JSON); what it prints for people is printed."""
        imported = self.run_verb("import", self.target, self.stage.requests_csv, "--kind", "requests")
        if imported.returncode != 0:
            raise StageError("lowtide import failed: " + imported.stderr.strip())
        say(f"\n$ lowtide diagnose {self.target} --steady")
        shown = self.run_verb("diagnose", self.target, "--steady")
        say(shown.stdout.rstrip() + ("\n" + shown.stderr.rstrip() if shown.stderr.strip() else ""))
        say(f"(exit status {shown.returncode})\n")
        document = self.run_verb("diagnose", self.target, "--steady", "--json")
        try:
            return shown.returncode, json.loads(document.stdout)
        except json.JSONDecodeError as e:
            raise StageError(f"diagnose --json gave no JSON: {e}") from e


def act(name, fault, lowtide):
    folder = os.path.join(os.environ["LT_STAGE_FOLDER"], name)
    with Stage(folder, SCENARIO, fault) as stage:
        play = Act(stage, lowtide, name)
        play.play()
        return play.verdict()


def found(document):
    return sorted(s["name"] for s in document["series"] if s["verdict"] in ("leak", "external"))


def judge_leaky(status, document):
    """What is wrong with the answer, as sentences; none: it is right."""
    names = found(document)
    wrong = [] if status == 1 else [f"exit status {status}, not 1"]
    wrong += [f"{name} was not found" for name in SCENARIO.expect if name not in names]
    return wrong + [f"{name} was accused wrongly" for name in names if name in SCENARIO.silent()]


def judge_clean(status, document):
    wrong = [] if status == 0 else [f"exit status {status}, not 0"]
    return wrong + [f"{name} was accused wrongly" for name in found(document)]


def report(title, wrong):
    say(f"{title}: " + ("as expected" if not wrong else "NOT as expected: " + "; ".join(wrong)))
    return not wrong


def main():
    lowtide = os.environ["LOWTIDE"]
    seconds = int(SCENARIO.seconds + SCENARIO.idle)
    say("A FastAPI service under uvicorn, streaming from a local OpenAI-compatible upstream through the openai client.")
    say(f"Traffic: {SCENARIO.rate:.0f} requests/s for {SCENARIO.seconds:.0f} s, then {SCENARIO.idle:.0f} s of silence.\n")
    say(f"1. The leaky service: an SDK client per 4th chat, a temp file per spoken answer ({seconds} s)")
    leaky = judge_leaky(*act("api", FAULT, lowtide))
    say(f"2. Its clean twin: same endpoints, same traffic, the work done right ({seconds} s)")
    clean = judge_clean(*act("api-clean", "none", lowtide))
    results = [report("leaky service", leaky), report("clean twin", clean)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StageError as error:
        say(f"demo: {error}")
        sys.exit(1)

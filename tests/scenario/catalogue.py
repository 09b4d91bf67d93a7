"""Every scenario: what is planted, under which traffic, what must be found and what must not. One table.

`python -m scenario.catalogue` prints it as JSON. A scenario's clean twin is the same traffic on the service without the
fault: nothing at all may be found there.
"""
import json
from dataclasses import asdict, dataclass

from scenario.load.generator import Call

# What every service is asked for, so that none is idle outside the fault: endpoint -> one kind of request.
BACKGROUND = {
    "POST /v1/chat": Call("POST /v1/chat", 1.5, text_bytes=2000),
    "POST /v1/stream": Call("POST /v1/stream", 0.8, stream=True, cancel=0.2),
    "POST /v1/embed": Call("POST /v1/embed", 1.0),
    "POST /v1/attach": Call("POST /v1/attach", 0.6, fail=0.2),
    "POST /v1/speak": Call("POST /v1/speak", 0.8),
    "POST /v1/index": Call("POST /v1/index", 0.8),
    "POST /v1/render": Call("POST /v1/render", 0.2),
    "POST /v1/transcode": Call("POST /v1/transcode", 0.2),
    "GET /healthz": Call("GET /healthz", 0.6),
}

# Traffic profiles. Scenarios of one profile share their clean twin: it is the same run.
TRAFFIC = {
    "chat": [Call("POST /v1/chat", 8, text_bytes=6000)],
    "stream": [Call("POST /v1/stream", 6, stream=True, cancel=0.4), Call("POST /v1/embed", 6)],
    "children": [Call("POST /v1/render", 4), Call("POST /v1/transcode", 3)],
    "files": [Call("POST /v1/speak", 5), Call("GET /healthz", 4), Call("POST /v1/attach", 5, fail=0.25)],
    "index": [Call("POST /v1/index", 8)],
    "workers": [Call("POST /v1/attach", 8, fail=0.5)],
    "share": [Call("POST /v1/share", 8)],
}

# Series a verdict can be about (contract: series[].name) that this service moves.
SERIES = ("rss_anon", "fds", "sockets", "pipes", "files", "connections", "threads", "children", "zombies", "tmpfiles",
          "tmp_bytes", "shm_bytes")


@dataclass
class Plant:
    """What the fault must be seen to do by a plain count in /proc, before any verdict is believed.

    `series` grows by `amount` for each request to `endpoint` with an outcome in `outcomes`, every `every`-th time. A count
    must match to within `slack` things; memory (in bytes) must be at least that much.
    """
    series: str
    amount: float
    endpoint: str
    outcomes: tuple = ("ok",)
    every: int = 1
    slack: int = 6
    tree: int = 1          # how many of them the whole process tree holds for each: a pipe has ends in the child, too


@dataclass
class Scenario:
    name: str
    fault: str                     # what --fault is given
    traffic: str                   # the profile; BACKGROUND is added for the other endpoints
    plants: list
    expect: dict                   # series -> verdicts that are right
    free: tuple = ()               # series that may be found growing: true side effects of the fault
    rate: float = 50.0
    warm: float = 8.0              # seconds of the same traffic before the watch begins
    seconds: float = 32.0
    idle: float = 3.0
    lives: int = 1                 # over 1: the service is killed with SIGKILL and started again in between
    slots: int = 0                 # shared memory segments the service works with
    interval: str = "0.2s"         # of the watch
    workers: int = 0               # over 0: gunicorn master with so many workers
    max_requests: int = 0          # gunicorn recycles a worker after so many ...
    jitter: int = 0                # ... and up to so many more, so that not all go at once
    verdict: str = "leak"          # of the target as a whole
    notes: str = ""

    def silent(self):
        """Series in which a finding would be wrong."""
        return tuple(s for s in SERIES if s not in self.expect and s not in self.free)

    def mix(self):
        own = {c.endpoint: c for c in TRAFFIC[self.traffic]}
        return list({**BACKGROUND, **own}.values())

    def twin(self):
        """What the clean twin's run depends on: scenarios with the same answer have the same twin."""
        return (self.traffic, self.lives, self.slots, self.workers)


LEAK = ("leak",)

SCENARIOS = [
    Scenario(
        "client-per-request", "client-per-request:every=4", "chat",
        [Plant("sockets", 1, "POST /v1/chat", every=4, slack=40), Plant("rss_anon", 20_000, "POST /v1/chat", every=4)],
        {"fds": LEAK, "sockets": LEAK, "connections": LEAK, "rss_anon": LEAK}),
    Scenario(
        "unbounded-cache", "unbounded-cache", "stream",
        [Plant("rss_anon", 5_000, "POST /v1/embed")], {"rss_anon": LEAK}),
    Scenario(
        "append-only-record", "append-only-record", "chat",
        [Plant("rss_anon", 5_000, "POST /v1/chat")], {"rss_anon": LEAK}),
    Scenario(
        "dangling-task", "dangling-task", "chat",
        [Plant("rss_anon", 6_000, "POST /v1/chat")], {"rss_anon": LEAK}),
    Scenario(
        "unclosed-generator", "unclosed-generator", "stream",
        [Plant("sockets", 1, "POST /v1/stream", outcomes=("cancelled",), slack=40)],
        {"fds": LEAK, "sockets": LEAK, "connections": LEAK}, free=("rss_anon",)),
    Scenario(
        "zombie-child", "zombie-child:every=2", "children",
        [Plant("zombies", 1, "POST /v1/render", every=2)], {"zombies": LEAK}),
    Scenario(
        "undrained-child", "undrained-child:every=3", "children",
        [Plant("children", 1, "POST /v1/transcode", outcomes=("timeout",)),
         Plant("pipes", 1, "POST /v1/transcode", outcomes=("timeout",), tree=3)],
        {"children": LEAK, "fds": LEAK, "pipes": LEAK}, free=("files", "threads", "rss_anon"),
        notes="Each hung child is a process with descriptors, a thread and memory of its own: sums over the tree grow."),
    Scenario(
        "temp-files", "temp-files", "files",
        [Plant("tmpfiles", 1, "POST /v1/speak")], {"tmpfiles": LEAK, "tmp_bytes": LEAK}),
    Scenario(
        "threads", "threads:every=5", "index",
        [Plant("threads", 1, "POST /v1/index", every=5)], {"threads": LEAK}, free=("rss_anon",)),
    Scenario(
        "shared-memory", "shared-memory", "share",
        [], {"shm_bytes": ("external",)}, rate=80.0, warm=0.0,
        seconds=5.0, idle=0.5, lives=6, slots=8, interval="0.1s",
        verdict="external", notes="The start values of six lives decide; within a life nothing grows."),
    Scenario(
        "health-check", "health-check", "files",
        [Plant("files", 1, "GET /healthz")], {"fds": LEAK, "files": LEAK}, free=("rss_anon",)),
    Scenario(
        "error-path-fd", "error-path-fd", "files",
        [Plant("files", 1, "POST /v1/attach", outcomes=("upstream_error",))], {"fds": LEAK, "files": LEAK}),
    Scenario(
        "recycled-workers", "error-path-fd", "workers",
        [], {"fds": LEAK, "files": LEAK}, seconds=70.0, workers=2, max_requests=600, jitter=150,
        notes="gunicorn recycles each worker after 600 to 750 requests: a sawtooth over many lives, and still a leak."),
]

BY_NAME = {s.name: s for s in SCENARIOS}


def as_json():
    documents = []
    for s in SCENARIOS:
        documents.append({**asdict(s), "mix": [asdict(c) for c in s.mix()], "silent": s.silent(),
                          "twin": {"fault": "none", "verdict": "ok", "silent": SERIES}})
    return json.dumps(documents, indent=2)


if __name__ == "__main__":
    print(as_json())

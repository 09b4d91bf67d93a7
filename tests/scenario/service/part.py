"""A part is one thing the service does for a request that can be done right or wrong.

Each file of faults/ holds one part twice: `Right`, which every healthy service uses, and `Wrong`, a subclass that plants
the fault. So the clean twin of a fault is the same service, the same endpoint and the same traffic with `Right` in place.
"""
from dataclasses import dataclass, field

# Of every shared client: a burst may open many connections, few stay.
LIMITS = {"max_connections": 1000, "max_keepalive_connections": 10}


class Part:
    def __init__(self, settings, params):
        self.settings = settings
        self.every = max(1, int(params.get("every", 1)))
        self.calls = 0

    def due(self):
        """True for every n-th call: how `Wrong` spreads its fault over requests (--fault NAME:every=n)."""
        self.calls += 1
        return self.calls % self.every == 0

    async def start(self):
        """Once, before the first request, in the server's event loop."""

    async def stop(self):
        """Once, after the last request, when the server is told to stop (not when it is killed)."""


@dataclass
class Settings:
    upstream: str                       # "http://127.0.0.1:9000/v1"
    folder: str                         # private to this service: databases, spool files
    tmp: str                            # where temp files go; what `lowtide watch --tmp` is pointed at
    shm_prefix: str = "lt-scenario"     # names of shared memory segments start with it
    slots: int = 0                      # shared memory segments to work with
    faults: dict = field(default_factory=dict)  # fault name -> its parameters


def parse_faults(text):
    """"a,b:every=4:size=9" -> {"a": {}, "b": {"every": "4", "size": "9"}}; "" and "none" -> {}."""
    faults = {}
    for item in filter(None, text.split(",")):
        name, *pairs = item.split(":")
        if name != "none":
            faults[name] = dict(pair.split("=", 1) for pair in pairs)
    return faults

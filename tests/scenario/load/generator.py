"""An open-loop load generator: request k starts at start + k / rate, whatever became of those before it.

Which request it is comes from a seeded draw over the mix, so a run can be repeated and the twin gets the same traffic.
Latency is nobody's business here. At most MOST_IN_FLIGHT requests are open; what would go over is shed and counted, so that
a machine too busy to keep up gets fewer requests, not a pile of open connections that would look like the service's doing.
"""
import asyncio
import random
import time
from dataclasses import dataclass

import httpx

from scenario.load.record import Record, outcome_of

MOST_IN_FLIGHT = 24
WORDS = "tide sand shore wave moon drift stone foam current ebb flood slack harbour pier anchor rope".split()


@dataclass
class Call:
    """One kind of request in the mix."""
    endpoint: str            # "POST /v1/chat"
    weight: float = 1.0
    stream: bool = False
    cancel: float = 0.0      # share of the streams the client leaves after `after` events
    after: int = 2
    fail: float = 0.0        # share for which the upstream is asked to fail
    text_bytes: int = 200


@dataclass
class Answer:
    outcome: str
    version: str = ""
    pid: str = ""


def text_of(random_source, size):
    """A text nobody sent before, about `size` bytes of words."""
    text = f"{random_source.getrandbits(64):016x}"
    while len(text) < size:
        text += " " + " ".join(random_source.choices(WORDS, k=24))
    return text[:max(size, 16)]


class Generator:
    def __init__(self, url, mix, rate, seed=1):
        self.url, self.mix, self.rate = url, mix, rate
        self.random = random.Random(seed)
        self.record = Record()
        self.shed = 0
        self.tasks = set()

    async def run(self, seconds):
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
        # trust_env: a proxy of the machine's owner has no place between two loopback processes.
        async with httpx.AsyncClient(base_url=self.url, limits=limits, timeout=30, verify=False, trust_env=False) as http:
            await self.send_on_schedule(http, seconds)
            if self.tasks:
                await asyncio.wait(self.tasks, timeout=30)

    async def send_on_schedule(self, http, seconds):
        start = time.monotonic()
        for k in range(int(self.rate * seconds)):
            late = time.monotonic() - (start + k / self.rate)
            if late < 0:
                await asyncio.sleep(-late)
            call = self.random.choices(self.mix, [c.weight for c in self.mix])[0]
            draws = (self.random.random(), text_of(self.random, call.text_bytes))
            if len(self.tasks) >= MOST_IN_FLIGHT:
                self.shed += 1
                continue
            task = asyncio.create_task(self.one(http, call, *draws))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def one(self, http, call, draw, text):
        try:
            answer = await self.send(http, call, draw, text)
        except httpx.TimeoutException:
            answer = Answer("timeout")
        except httpx.HTTPError:
            answer = Answer("error")
        self.record.add(time.time(), call, answer)

    async def send(self, http, call, draw, text):
        method, path = call.endpoint.split(" ")
        headers = {"x-upstream-fail": "503"} if draw < call.fail else {}
        body = {"text": text} if method == "POST" else None
        if not call.stream:
            r = await http.request(method, path, json=body, headers=headers)
            return Answer(outcome_of(r.status_code), r.headers.get("x-version", ""), r.headers.get("x-pid", ""))
        # A stream the client will leave is long, so that there is something left to leave.
        leave = draw < call.cancel
        headers["x-upstream-tokens"] = "40" if leave else "6"
        return await self.read_stream(http, call, method, path, body, headers, leave)

    @staticmethod
    async def read_stream(http, call, method, path, body, headers, leave):
        events = 0
        async with http.stream(method, path, json=body, headers=headers) as r:
            answer = Answer(outcome_of(r.status_code), r.headers.get("x-version", ""), r.headers.get("x-pid", ""))
            async for line in r.aiter_lines():
                events += line.startswith("data:")
                if leave and events >= call.after:
                    answer.outcome = "cancelled"
                    break  # leaving the block closes the connection: the service sees its client go
        return answer

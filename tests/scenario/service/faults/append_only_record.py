"""append-only-record: every finished request is kept with its payload, "for debugging".

Report:      gradio-app/gradio#11602 (event_ids_to_events, one entry per request, never popped),
             modelcontextprotocol/python-sdk#1283 (finished sessions stay in a dict).
Plants:      POST /v1/chat appends {id, prompt, answer} to a list.
Expected:    rss_anon: leak, about the size of the prompt (8 KB in the load) per call.
Not:         fds, sockets, connections, threads, children, zombies, tmpfiles.
Right:       the last 50 requests, in a deque with that bound.
"""
from collections import deque

from scenario.service.part import Part


class Right(Part):
    MOST = 50

    async def start(self):
        self.recent = deque(maxlen=self.MOST)

    def add(self, number, prompt, answer):
        self.recent.append({"id": number, "prompt": prompt, "answer": answer})


class Wrong(Right):
    async def start(self):
        self.recent = []

    def add(self, number, prompt, answer):
        if self.due():
            super().add(number, prompt, answer)

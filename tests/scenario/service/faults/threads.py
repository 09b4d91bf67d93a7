"""threads: each request starts a consumer thread that nobody ends.

Report:      langfuse/langfuse#2974 (a handler per request starts consumer threads that never end),
             cognizant-ai-lab/neuro-san#966 (about one thread per 25 requests and nothing else).
Plants:      every n-th POST /v1/index makes its own queue and consumer thread instead of using the shared one.
Expected:    threads: leak, 1,000/n per 1,000 calls. rss_anon may grow with the stacks (tens of KB a thread).
Not:         fds, sockets, connections, children, zombies, tmpfiles.
Right:       one queue and one consumer for the life of the service.
"""
import asyncio
import queue
import threading

from scenario.service.part import Part


def consume(jobs):
    while (job := jobs.get()) is not None:
        text, loop, future = job
        words = len(text.split())
        loop.call_soon_threadsafe(answer, future, words)
        del job, text, loop, future


def answer(future, words):
    if not future.done():
        future.set_result(words)


class Right(Part):
    async def start(self):
        self.shared = self.consumer()

    async def stop(self):
        self.shared.put(None)

    @staticmethod
    def consumer():
        jobs = queue.SimpleQueue()
        threading.Thread(target=consume, args=(jobs,), daemon=True, name="indexer").start()
        return jobs

    def jobs(self):
        return self.shared

    async def index(self, text):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self.jobs().put((text, loop, future))
        return await future


class Wrong(Right):
    def jobs(self):
        return self.consumer() if self.due() else self.shared

"""zombie-child: children are started and never waited for.

Report:      puppeteer/puppeteer#615, #1825 (browser helpers become defunct, a few per request).
Plants:      every n-th POST /v1/render starts a short child, files it under "jobs" and never asks how it ended.
Expected:    zombies: leak, 1,000/n per 1,000 renders.
Not:         fds, pipes, sockets, threads, children (alive ones), tmpfiles, rss_anon.
Right:       the child is awaited.
"""
import asyncio
import subprocess

from scenario.service.part import Part

COMMAND = ["/bin/true"]


class Right(Part):
    async def start(self):
        self.jobs = {}

    async def render(self, number):
        return await self.render_and_wait()

    @staticmethod
    async def render_and_wait():
        child = await asyncio.create_subprocess_exec(*COMMAND)
        return await child.wait()


class Wrong(Right):
    async def render(self, number):
        if not self.due():
            return await self.render_and_wait()
        self.jobs[number] = subprocess.Popen(COMMAND)
        return 0

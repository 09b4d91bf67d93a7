"""undrained-child: a child's error pipe is never read, so the child hangs in write() for ever.

Report:      Zulko/moviepy#576, #684 (ffmpeg blocks once its stderr pipe is full); the request times out, the job stays.
Plants:      POST /v1/transcode starts a child that writes 128 KB to stderr=PIPE and waits for it to end without
             reading. After 200 ms it answers 504 and leaves the child, and the pipe, where they are.
Expected:    children: leak, fds and pipes: leak, one each per call.
Not:         zombies, sockets, connections, threads, tmpfiles.
Right:       communicate() reads the pipe; a child that takes too long is killed and reaped.
"""
import asyncio
import subprocess
import time

from scenario.service.part import Part

COMMAND = ["/bin/sh", "-c", "exec head -c 131072 /dev/zero >&2"]


class Right(Part):
    TIMEOUT_S = 0.2

    async def start(self):
        self.jobs = {}

    async def stop(self):
        for job in self.jobs.values():
            job.kill()

    async def transcode(self, number):
        """True when the child came to its end."""
        return await self.drained()

    @staticmethod
    async def drained():
        child = await asyncio.create_subprocess_exec(*COMMAND, stderr=subprocess.PIPE)
        try:
            await asyncio.wait_for(child.communicate(), 30)
        except asyncio.TimeoutError:
            child.kill()
            await child.wait()
        return child.returncode == 0


class Wrong(Right):
    async def transcode(self, number):
        if not self.due():
            return await self.drained()
        job = subprocess.Popen(COMMAND, stderr=subprocess.PIPE)
        self.jobs[number] = job
        deadline = time.monotonic() + self.TIMEOUT_S
        while job.poll() is None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        return job.poll() == 0

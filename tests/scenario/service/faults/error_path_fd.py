"""error-path-fd: a file is closed at the end of the happy path only.

Report:      NousResearch/hermes-agent#83512 and its siblings (handles lost on error paths, the same mistake at six
             sites), Danswer/onyx#13743 (a finally guarded on a handler that is still None).
Plants:      POST /v1/attach spools the upload in an unlinked file, calls the upstream, closes the file. When the
             upstream answers 5xx the exception skips the close.
Expected:    fds, files, fds_deleted: leak, one per failed call. Nothing on calls that succeed.
Not:         sockets, connections, pipes, threads, children, zombies, tmpfiles, rss_anon.
Right:       the close stands in a finally.
"""
import os

import httpx

from scenario.service.part import LIMITS, Part


class Right(Part):
    async def start(self):
        limits = httpx.Limits(**LIMITS)
        self.http = httpx.AsyncClient(base_url=self.settings.upstream, verify=False, limits=limits)

    async def stop(self):
        await self.http.aclose()

    def open(self, number, text):
        path = os.path.join(self.settings.folder, f"spool-{os.getpid()}-{number}")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        os.write(fd, text.encode())
        return fd

    async def ask(self, text, headers):
        answer = await self.http.post("/embeddings", json={"model": "local", "input": text}, headers=headers)
        answer.raise_for_status()
        return len(answer.json()["data"])

    async def attach(self, number, text, headers):
        fd = self.open(number, text)
        try:
            return await self.ask(text, headers)
        finally:
            os.close(fd)


class Wrong(Right):
    async def attach(self, number, text, headers):
        if not self.due():
            return await super().attach(number, text, headers)
        fd = self.open(number, text)
        count = await self.ask(text, headers)
        os.close(fd)
        return count

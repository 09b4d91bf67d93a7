"""temp-files: a temp file per request, removed on no path.

Report:      freelawproject/doctor#248 (12 GB of stale audio and page files in /tmp until ENOSPC).
Plants:      every n-th POST /v1/speak writes a .wav of `bytes` (16,384) in the temp folder and leaves it there.
Expected:    tmpfiles: leak, 1,000/n per 1,000 calls. tmp_bytes: leak, that times 16 KiB.
Not:         fds, files, sockets, connections, threads, children, zombies, rss_anon.
Right:       the file is removed whatever happens.
"""
import os
import tempfile

from scenario.service.part import Part


class Right(Part):
    def __init__(self, settings, params):
        super().__init__(settings, params)
        self.size = int(params.get("bytes", 16384))

    def write(self):
        fd, path = tempfile.mkstemp(suffix=".wav", dir=self.settings.tmp)
        with os.fdopen(fd, "wb") as f:
            f.write(b"\0" * self.size)
        return path

    def speak(self):
        path = self.write()
        try:
            return os.path.getsize(path)
        finally:
            self.discard(path)

    def discard(self, path):
        os.unlink(path)


class Wrong(Right):
    def discard(self, path):
        if not self.due():
            os.unlink(path)

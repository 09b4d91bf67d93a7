"""shared-memory: segments outlive a killed server, so every restart begins higher than the last.

Report:      sgl-project/sglang#28089 (SIGKILLed servers leave multi-MB segments until start-up dies with a bus error).
Plants:      the service (started with --slots 8) makes 8 POSIX segments of 256 KiB and removes them when it stops; a
             SIGKILL skips that, and the next start knows nothing of the last one's. POST /v1/share writes into them:
             no growth within a life.
Expected:    shm_bytes, shm_segments: external (each life starts 2 MiB and 8 segments above the one before).
Not:         fds, sockets, connections, threads, children, zombies, tmpfiles.
Right:       the maker's pid is part of the name, and a start removes the segments of makers that are dead.
"""
import mmap
import os
import uuid

from scenario.service.part import Part

FOLDER = "/dev/shm"  # where Linux keeps POSIX shared memory: shm_open(name) is open(FOLDER + name)


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}")


class Right(Part):
    SIZE = 256 * 1024

    async def start(self):
        self.sweep()
        self.segments = {}
        for _ in range(self.settings.slots):
            name = self.new_name()
            self.segments[name] = self.make(name)

    async def stop(self):
        for name, (fd, memory) in self.segments.items():
            memory.close()
            os.close(fd)
            os.unlink(os.path.join(FOLDER, name))

    def new_name(self):
        return f"{self.settings.shm_prefix}-{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def make(self, name):
        fd = os.open(os.path.join(FOLDER, name), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(fd, self.SIZE)
        memory = mmap.mmap(fd, self.SIZE)
        memory.write(b"\1" * self.SIZE)
        return fd, memory  # the descriptor stays open, as in multiprocessing.shared_memory

    def sweep(self):
        for name in os.listdir(FOLDER):
            if not name.startswith(self.settings.shm_prefix + "-"):
                continue
            maker = name.split("-")[-2]
            if maker.isdigit() and not is_alive(int(maker)):
                os.unlink(os.path.join(FOLDER, name))

    def share(self, text):
        names = list(self.segments)
        if not names:
            return 0
        _fd, memory = self.segments[names[hash(text) % len(names)]]
        data = text.encode()[:self.SIZE]
        memory[:len(data)] = data
        return len(data)


class Wrong(Right):
    def sweep(self):
        pass

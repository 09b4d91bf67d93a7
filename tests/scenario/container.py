"""python -m scenario.container FOLDER FAULT: a stage as a container sees it. Run as pid 1 of new namespaces:

    unshare --mount --pid --net --ipc --fork --kill-child --mount-proc python -m scenario.container FOLDER FAULT

Its own pids, its own loopback, its own /dev/shm, its own file system on the temp folder: none of it can be seen from the
host except through /proc/PID/root and the namespaces of its processes. Signs are given by files in FOLDER, which both
sides see: `ready` (the service is up), `go` (the host watches: start the load), `done` (the load has ended), `end`.
"""
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time

from scenario.catalogue import TRAFFIC, Scenario
from scenario.load.generator import Call
from scenario.stage import Stage, StageError, wait_for

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

TRAFFIC["container"] = [Call("POST /v1/chat", 6), Call("POST /v1/speak", 3), Call("POST /v1/render", 1)]
SCENARIO = Scenario(
    "container", "client-per-request:every=4,temp-files,zombie-child",
    "container", [],
    {"fds": ("leak",), "sockets": ("leak",), "connections": ("leak",), "tmpfiles": ("leak",), "zombies": ("leak",)},
    free=("rss_anon", "tmp_bytes"))


def bring_loopback_up():
    request = struct.pack("16sh", b"lo", 0).ljust(40, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        flags = struct.unpack_from("16sh", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP).ljust(40, b"\0"))


def mount_private(folder):
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)


def sign(folder, name):
    with open(os.path.join(folder, name), "w", encoding="ascii"):
        pass


def wait_for_sign(folder, name):
    while not os.path.exists(os.path.join(folder, name)):
        time.sleep(0.05)


def main(folder, fault):
    bring_loopback_up()
    mount_private("/dev/shm")
    with Stage(os.path.join(folder, "stage"), SCENARIO, fault) as stage:
        mount_private(stage.tmp)
        stage.start_upstream()
        stage.start_service()
        sign(folder, "ready")
        wait_for_sign(folder, "go")
        load = stage.start_load()
        if load.wait() != 0:
            raise StageError("the load failed: " + stage.log_tail("load"))
        sign(folder, "done")
        wait_for_sign(folder, "end")


def start(folder, fault):
    """From the host: the container's process; its end is the end of all in it."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--pid", "--net", "--ipc", "--fork",
               "--kill-child", "--mount-proc", "--", sys.executable, "-m", "scenario.container", folder, fault]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    log = os.path.join(folder, "container.log")
    with open(log, "ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env={**os.environ, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"})
    process.log = log
    return process


def wait_until(process, folder, name):
    wait_for(lambda: os.path.exists(os.path.join(folder, name)), f"the sign '{name}' of the container", process, process.log)


if __name__ == "__main__":
    main(*sys.argv[1:])

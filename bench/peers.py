"""What others pay for one look at one process: CPU microseconds per process-sample.

Every peer is set up the way that is kindest to it and still gives what it is compared for; the row's note says how.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

from measure import Missing, children_cpu_seconds, cpu_seconds, process_count

PSUTIL = """
import sys, time
import psutil
attrs = ["memory_info", "num_fds", "num_threads", "ppid"]
list(psutil.process_iter(attrs))
for _ in range(int(sys.argv[1])):
    begin = time.process_time()
    n = sum(1 for _ in psutil.process_iter(attrs))
    print((time.process_time() - begin) / n * 1e6)
"""

SHELL = """
for p in "$@"; do
    awk '/VmRSS/ { print $2 }' /proc/$p/status
    ls /proc/$p/fd | wc -l
    ls /proc/$p/task | wc -l
    pgrep -P $p | wc -l
done >/dev/null
"""


def psutil_us(pids, repeat):
    """process_iter over the whole host: rss, fds, threads, parent."""
    python = next((p for p in ("/usr/bin/python3", shutil.which("python3"))
                   if p and subprocess.run([p, "-c", "import psutil"], capture_output=True).returncode == 0), None)
    if not python:
        raise Missing("psutil is not installed (Debian: python3-psutil)")
    out = subprocess.run([python, "-c", PSUTIL, str(repeat)], capture_output=True, text=True, check=True)
    return [float(x) for x in out.stdout.split()]


def pidstat_us(pids, repeat):
    """pidstat -r -v -p ALL 1 2: memory, threads and fds of every process of the host, three readings."""
    if not shutil.which("pidstat"):
        raise Missing("pidstat is not installed (Debian: sysstat)")
    values = []
    for _ in range(max(2, repeat // 2)):
        begin = children_cpu_seconds()
        subprocess.run(["pidstat", "-r", "-v", "-p", "ALL", "1", "2"], stdout=subprocess.DEVNULL, check=True)
        values.append((children_cpu_seconds() - begin) / (3 * process_count()) * 1e6)
    return values


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _scrape(url):
    with urllib.request.urlopen(url, timeout=60) as r:
        return len(r.read())


def _wait_for(url, process):
    for _ in range(100):
        try:
            return _scrape(url)
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise Missing("prometheus-process-exporter did not answer")


def exporter_us(pids, repeat):
    """process-exporter with one group per pid, smaps and per-thread metrics off; CPU of its process per scrape."""
    program = shutil.which("prometheus-process-exporter") or shutil.which("process-exporter")
    if not program:
        raise Missing("process-exporter is not installed (Debian: prometheus-process-exporter)")
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:
        config.write('process_names:\n  - name: "{{.Comm}}-{{.PID}}"\n    cmdline: [".+"]\n')
        config.flush()
        p = subprocess.Popen([program, "-config.path", config.name, "-gather-smaps=false", "-threads=false",
                              "-children=false", "-web.listen-address", f"127.0.0.1:{port}"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(url, p)
            values = []
            for _ in range(repeat):
                begin = cpu_seconds(p.pid)
                _scrape(url)
                values.append((cpu_seconds(p.pid) - begin) / len(pids) * 1e6)
            return values
        finally:
            p.terminate()
            p.wait()


def shell_us(pids, repeat):
    """The loop people write: awk VmRSS, ls fd | wc -l, ls task | wc -l, pgrep -P; over at most 40 of the processes."""
    for tool in ("awk", "pgrep"):
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed")
    some = [str(p) for p in pids[:: max(1, len(pids) // 40)]][:40]
    values = []
    for _ in range(max(2, repeat // 2)):
        begin = children_cpu_seconds()
        subprocess.run(["sh", "-c", SHELL, "sh", *some], check=True)
        values.append((children_cpu_seconds() - begin) / len(some) * 1e6)
    return values


PEERS = [
    # name, function, ratio to reach at 1,000 processes, note
    ("psutil", psutil_us, 15, "process_iter: rss, fds, threads, ppid"),
    ("pidstat", pidstat_us, None, "-r -v -p ALL 1 2"),
    ("process-exporter", exporter_us, 60, "one group per pid, smaps and threads off"),
    ("shell loop", shell_us, 1000, "awk VmRSS; ls fd | wc -l; ls task | wc -l; pgrep -P"),
]

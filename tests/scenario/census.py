"""Counts what a process holds by plain reads of /proc and folders: the second opinion the plants are checked against.

Deliberately not Lowtide's way of counting, so that the two can disagree.
"""
import os

COLUMNS = ["rss_bytes", "rss_anon", "fds", "sockets", "pipes", "files", "threads", "children", "zombies", "tmpfiles",
           "tmp_bytes", "shm_bytes"]


def status_of(pid):
    fields = {}
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        for line in f:
            name, _, value = line.partition(":")
            fields[name] = value.split()
    return fields


def start_time_of(pid):
    """Seconds since the epoch at which the process began."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        ticks = int(f.read().rpartition(")")[2].split()[19])
    with open("/proc/stat", encoding="ascii") as f:
        boot = next(int(line.split()[1]) for line in f if line.startswith("btime"))
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def fd_kinds(pid):
    kinds = {"fds": 0, "sockets": 0, "pipes": 0, "files": 0}
    for name in os.listdir(f"/proc/{pid}/fd"):
        kinds["fds"] += 1
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        kind = {"s": "sockets", "p": "pipes", "/": "files"}.get(target[0])
        if kind and not target.startswith("/dev/null"):
            kinds[kind] += 1
    return kinds


def children_of(pid):
    """Child processes of all threads, with their state letters."""
    children = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                found = f.read().split()
        except FileNotFoundError:
            continue
        for child in found:
            try:
                children[int(child)] = status_of(child)["State"][0]
            except (FileNotFoundError, ProcessLookupError):
                pass
    return children


def folder_size(folder, prefix=""):
    count = size = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                try:
                    size += entry.stat(follow_symlinks=False).st_size
                    count += 1
                except FileNotFoundError:
                    pass
    return count, size


def census(pid, tmp, shm_prefix):
    """One row; raises FileNotFoundError or ProcessLookupError when the process has gone."""
    status = status_of(pid)
    row = {"rss_bytes": int(status["VmRSS"][0]) * 1024, "rss_anon": int(status["RssAnon"][0]) * 1024,
           "threads": int(status["Threads"][0]), **fd_kinds(pid)}
    states = children_of(pid).values()
    row["zombies"] = sum(state == "Z" for state in states)
    row["children"] = len(states) - row["zombies"]
    row["tmpfiles"], row["tmp_bytes"] = folder_size(tmp)
    row["shm_bytes"] = folder_size(f"/proc/{pid}/root/dev/shm", shm_prefix)[1]
    return row

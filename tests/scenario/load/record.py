"""Request counts by second, as the requests CSV of Lowtide's contract: ts,endpoint,version,stream,outcome,n,pid."""
import csv
import os
from collections import Counter

COLUMNS = ["ts", "endpoint", "version", "stream", "outcome", "n", "pid"]


def outcome_of(status):
    if status < 400:
        return "ok"
    return {502: "upstream_error", 504: "timeout"}.get(status, "client_error" if status < 500 else "error")


class Record:
    def __init__(self):
        self.counts = Counter()

    def add(self, now_s, call, answer):
        key = (int(now_s), call.endpoint, answer.version, int(call.stream), answer.outcome, answer.pid)
        self.counts[key] += 1

    def totals(self):
        """outcome -> count"""
        totals = Counter()
        for key, n in self.counts.items():
            totals[key[4]] += n
        return dict(totals)

    def write(self, path):
        with open(path + ".part", "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f)
            out.writerow(COLUMNS)
            for (ts, endpoint, version, stream, outcome, pid), n in sorted(self.counts.items()):
                out.writerow([ts, endpoint, version, stream, outcome, n, pid])
        os.rename(path + ".part", path)

"""health-check: the probe opens a database handle each time and closes none.

Report:      NousResearch/hermes-agent#83226 (`with sqlite3.connect()` commits but does not close, an atexit callback
             pins the handle: 981 of 1,024 fds), and its siblings; the polled endpoint is the one that fills the table.
Plants:      GET /healthz reads a setting from a SQLite file through a new connection that atexit keeps.
Expected:    fds, files: leak, one per health check. rss_anon may grow (a handle has a page cache of its own).
Not:         sockets, connections, pipes, threads, children, zombies, tmpfiles.
Right:       the connection is closed, whatever happens.
"""
import atexit
import contextlib
import os
import sqlite3

from scenario.service.part import Part


class Right(Part):
    async def start(self):
        self.path = os.path.join(self.settings.folder, "state.db")
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            db.execute("CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value TEXT)")
            db.execute("INSERT OR REPLACE INTO state VALUES('ready', 'yes')")

    def check(self):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            return self.read(db)

    @staticmethod
    def read(db):
        return db.execute("SELECT value FROM state WHERE name = 'ready'").fetchone()[0] == "yes"


class Wrong(Right):
    def check(self):
        if not self.due():
            return super().check()
        db = sqlite3.connect(self.path)
        atexit.register(db.close)
        with db:
            return self.read(db)

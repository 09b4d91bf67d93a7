"""unbounded-cache: a cache keyed by what users type, with no bound.

Report:      openai/openai-python#2672, boto/boto3#3614, vectorize-io/hindsight#850. A dict or lru_cache(maxsize=None)
             whose keys never repeat.
Plants:      POST /v1/embed keeps every embedding under its text; the texts of the load are all different.
Expected:    rss_anon: leak, about 8 KB per call (256 floats in a list).
Not:         fds, sockets, connections, threads, children, zombies, tmpfiles.
Right:       the same cache with room for 100 texts, least recently used out first: full within seconds, then flat.
"""
from collections import OrderedDict

import httpx

from scenario.service.part import LIMITS, Part


class Right(Part):
    MOST = 100

    async def start(self):
        self.kept = OrderedDict()
        limits = httpx.Limits(**LIMITS)
        self.http = httpx.AsyncClient(base_url=self.settings.upstream, verify=False, limits=limits)

    async def stop(self):
        await self.http.aclose()

    async def embed(self, text, headers):
        if text in self.kept:
            self.kept.move_to_end(text)
            return self.kept[text]
        answer = await self.http.post("/embeddings", json={"model": "local", "input": text}, headers=headers)
        answer.raise_for_status()
        vector = answer.json()["data"][0]["embedding"]
        self.keep(text, vector)
        return vector

    def keep(self, text, vector):
        self.kept[text] = vector
        while len(self.kept) > self.MOST:
            self.kept.popitem(last=False)


class Wrong(Right):
    def keep(self, text, vector):
        if self.due():
            self.kept[text] = vector
        else:
            super().keep(text, vector)

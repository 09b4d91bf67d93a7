"""client-per-request: an SDK client is built in the handler and kept alive.

Report:      anthropics/anthropic-sdk-python#84, #128, #150; BerriAI/litellm#14540. One client per call, each with its own
             keep-alive pool; open files grow until OSError.
Plants:      every n-th POST /v1/chat builds an AsyncOpenAI of its own. A list "to close at shutdown" keeps it, its
             pool and the pool's one idle connection to the upstream.
Expected:    fds, sockets, connections: leak, 1,000/n per 1,000 chats. rss_anon: leak (about 60 KB a client).
Not:         files, pipes, threads, children, zombies, tmpfiles.
Right:       one client for the life of the service.
"""
import httpx2  # what the openai client is built on
import openai

from scenario.service.part import LIMITS, Part


class Right(Part):
    async def start(self):
        self.opened = []
        self.shared = self.build()

    async def stop(self):
        for client in self.opened:
            await client.close()

    def build(self):
        # verify=False: the upstream is plain HTTP, so no CA bundle (17 ms and 800 KB a client) is loaded.
        http = openai.DefaultAsyncHttpxClient(verify=False, limits=httpx2.Limits(**LIMITS))
        client = openai.AsyncOpenAI(base_url=self.settings.upstream, api_key="local", max_retries=0, http_client=http)
        self.opened.append(client)
        return client

    def client(self):
        return self.shared


class Wrong(Right):
    def client(self):
        return self.build() if self.due() else self.shared

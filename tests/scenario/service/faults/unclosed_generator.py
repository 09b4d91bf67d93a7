"""unclosed-generator: the client leaves a stream half-way and what fed the stream stays.

Report:      Kludex/uvicorn#336 (a sender blocks for ever after the client went away), HKUDS/LightRAG#3634 (one upstream
             stream and client per disconnect), sqlalchemy/sqlalchemy#12077 (a connection per cancelled request).
Plants:      POST /v1/stream reads the upstream in a pump task that fills a short queue. When the client cancels, the
             queue's reader ends; the pump is not cancelled and waits in put() with the upstream's response open.
Expected:    fds, sockets, connections: leak, one per cancelled stream. rss_anon: leak (tens of KB per cancel).
             suspended (where measured): leak. Nothing of this on streams read to the end.
Not:         files, pipes, threads, children, zombies, tmpfiles.
Right:       the generator's finally cancels the pump, which closes the upstream's response.
"""
import asyncio
import json

from scenario.service.part import Part


class Right(Part):
    async def start(self):
        self.pumps = set()

    async def stop(self):
        for pump in self.pumps:
            pump.cancel()

    async def events(self, client, prompt, headers):
        queue = asyncio.Queue(maxsize=2)
        pump = asyncio.create_task(self.pump(client, prompt, headers, queue))
        self.pumps.add(pump)
        pump.add_done_callback(self.pumps.discard)
        try:
            while (piece := await queue.get()) is not None:
                yield f"data: {json.dumps({'text': piece})}\n\n"
            yield "data: [DONE]\n\n"
        finally:
            self.end(pump)

    @staticmethod
    async def pump(client, prompt, headers, queue):
        try:
            stream = await client.chat.completions.create(
                model="local", messages=[{"role": "user", "content": prompt}], stream=True, extra_headers=headers)
            async with stream:
                async for chunk in stream:
                    await queue.put(chunk.choices[0].delta.content or "")
        except Exception as e:  # the upstream failed: the client is told inside the stream, as its status is long sent
            await queue.put(f"[{type(e).__name__}]")
        await queue.put(None)

    def end(self, pump):
        pump.cancel()


class Wrong(Right):
    def end(self, pump):
        pass

"""dangling-task: a fire-and-forget task waits for an answer that never comes, and holds the request.

Report:      BasedHardware/omi#2905 (tasks keep websocket session state after disconnect), langchain-ai/langgraph#7094.
Plants:      POST /v1/chat starts an audit task that waits for an acknowledgement. Every n-th one is lost, there is no
             time-out, and the table of pending acknowledgements keeps task, frame and prompt.
Expected:    rss_anon: leak, prompt + about 2 KB per lost acknowledgement. suspended (where measured): leak.
Not:         fds, sockets, connections, threads, children, zombies, tmpfiles.
Right:       the acknowledgement arrives 50 ms later; waiting ends after a second in any case.
"""
import asyncio

from scenario.service.part import Part


class Right(Part):
    TIMEOUT_S = 1.0

    async def start(self):
        self.pending = {}
        self.tasks = set()

    async def stop(self):
        for task in self.tasks:
            task.cancel()

    def begin(self, number, prompt):
        loop = asyncio.get_running_loop()
        self.pending[number] = loop.create_future()
        task = loop.create_task(self.audit(number, prompt))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        if self.arrives():
            loop.call_later(0.05, self.acknowledge, number)

    def arrives(self):
        return True

    def acknowledge(self, number):
        future = self.pending.get(number)
        if future is not None and not future.done():
            future.set_result(True)

    async def audit(self, number, prompt):
        try:
            await self.answer_to(number)
            return len(prompt)
        except asyncio.TimeoutError:
            return 0
        finally:
            self.pending.pop(number, None)

    async def answer_to(self, number):
        return await asyncio.wait_for(self.pending[number], self.TIMEOUT_S)


class Wrong(Right):
    def arrives(self):
        return not self.due()

    async def answer_to(self, number):
        return await self.pending[number]

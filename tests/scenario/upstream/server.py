"""A local OpenAI-compatible upstream: chat completions (whole and as SSE) and embeddings, no model behind it.

A plain ASGI application, so that it costs little beside the service under test and keeps nothing between requests.
What a request asks for by header decides how it goes:

    x-upstream-fail: 503      answers with that status and an OpenAI error body
    x-upstream-fail: cut      (streams) sends half of the events, then breaks the connection
    x-upstream-tokens: 40     events of a stream (default 12)
    x-upstream-gap: 0.02      seconds between events (default 0.01)
"""
import asyncio
import json
import time

WORDS = "the tide goes out and what was let go of goes with it but what is held stays on the sand".split()
EMBEDDING_SIZE = 256


async def read_json(receive):
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("client left")
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return json.loads(body or b"{}")


async def send_json(send, status, document):
    body = json.dumps(document).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def completion(number, model, text):
    return {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": int(time.time()), "model": model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 8, "completion_tokens": 12, "total_tokens": 20}}


def chunk(number, model, delta, finish=None):
    document = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": int(time.time()),
                "model": model, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(document).encode() + b"\n\n"


async def stream(send, number, model, headers):
    tokens = int(headers.get("x-upstream-tokens", "12"))
    gap = float(headers.get("x-upstream-gap", "0.01"))
    cut = headers.get("x-upstream-fail") == "cut"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    for i in range(tokens):
        if cut and i == tokens // 2:
            raise ConnectionError("cut on demand")
        delta = {"content": WORDS[i % len(WORDS)] + " "}
        await send({"type": "http.response.body", "body": chunk(number, model, delta), "more_body": True})
        await asyncio.sleep(gap)
    last = chunk(number, model, {}, finish="stop") + b"data: [DONE]\n\n"
    await send({"type": "http.response.body", "body": last})


def embedding(text):
    seed = hash(text) & 0xFFFF
    return [((seed * (i + 1)) % 1999) / 1999.0 for i in range(EMBEDDING_SIZE)]


class Upstream:
    def __init__(self):
        self.served = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.lifespan(receive, send)
        if scope["type"] != "http":
            return None
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        self.served += 1
        body = await read_json(receive) if scope["method"] == "POST" else {}
        fail = headers.get("x-upstream-fail", "")
        if fail.isdigit():
            error = {"message": "failed on demand", "type": "server_error", "code": None, "param": None}
            return await send_json(send, int(fail), {"error": error})
        return await self.answer(scope["path"], body, headers, send)

    async def answer(self, path, body, headers, send):
        model = body.get("model", "local")
        if path.endswith("/chat/completions"):
            if body.get("stream"):
                return await stream(send, self.served, model, headers)
            return await send_json(send, 200, completion(self.served, model, " ".join(WORDS[:12])))
        if path.endswith("/embeddings"):
            texts = body.get("input", "")
            texts = [texts] if isinstance(texts, str) else texts
            data = [{"object": "embedding", "index": i, "embedding": embedding(t)} for i, t in enumerate(texts)]
            return await send_json(send, 200, {"object": "list", "model": model, "data": data,
                                               "usage": {"prompt_tokens": 8, "total_tokens": 8}})
        if path.endswith("/models"):
            return await send_json(send, 200, {"object": "list", "data": [{"id": "local", "object": "model"}]})
        return await send_json(send, 404, {"error": {"message": "no such path", "type": "invalid_request_error"}})

    @staticmethod
    async def lifespan(receive, send):
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await send({"type": "lifespan.shutdown.complete"})
                return


app = Upstream()

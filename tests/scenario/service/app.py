"""The service: a small model gateway. One endpoint per thing that can go wrong; each hands its work to a part.

Configured by environment, so that uvicorn and gunicorn can both import `app` from here:
    LT_FAULT     faults by name ("temp-files:every=2,threads"), empty: the clean service
    LT_UPSTREAM  base URL of the OpenAI-compatible upstream
    LT_FOLDER    a private folder;   LT_TMP  the temp folder;   LT_SHM_PREFIX  names of shared memory segments
    LT_SLOTS     how many of those it works with (0)
"""
import contextlib
import itertools
import os

import httpx
import openai
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from scenario.service.faults import build_parts
from scenario.service.part import Settings, parse_faults

VERSION = "1.0"
UPSTREAM_HEADERS = ("x-upstream-fail", "x-upstream-tokens", "x-upstream-gap")


class Ask(BaseModel):
    text: str


class NamePid:
    """Every answer names the process that gave it: request counts can then be joined to lives."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def named(message):
            if message["type"] == "http.response.start":
                names = [(b"x-pid", str(os.getpid()).encode()), (b"x-version", VERSION.encode())]
                message["headers"] = list(message.get("headers", [])) + names
            await send(message)
        await self.app(scope, receive, named if scope["type"] == "http" else send)


def settings_from_environment():
    folder = os.environ["LT_FOLDER"]
    return Settings(upstream=os.environ["LT_UPSTREAM"], folder=folder, tmp=os.environ.get("LT_TMP", folder),
                    shm_prefix=os.environ.get("LT_SHM_PREFIX", "lt-scenario"),
                    slots=int(os.environ.get("LT_SLOTS", "0")), faults=parse_faults(os.environ.get("LT_FAULT", "")))


def for_upstream(request):
    return {name: request.headers[name] for name in UPSTREAM_HEADERS if name in request.headers}


def add_model_routes(app, parts, numbers):
    @app.post("/v1/chat")
    async def chat(ask: Ask, request: Request):
        number = next(numbers)
        answer = await parts["client"].client().chat.completions.create(
            model="local", messages=[{"role": "user", "content": ask.text}], extra_headers=for_upstream(request))
        text = answer.choices[0].message.content
        parts["journal"].add(number, ask.text, text)
        parts["audit"].begin(number, ask.text)
        return {"id": number, "text": text}

    @app.post("/v1/stream")
    async def stream(ask: Ask, request: Request):
        events = parts["relay"].events(parts["client"].shared, ask.text, for_upstream(request))
        return StreamingResponse(events, media_type="text/event-stream")

    @app.post("/v1/embed")
    async def embed(ask: Ask, request: Request):
        vector = await parts["cache"].embed(ask.text, for_upstream(request))
        return {"size": len(vector)}

    @app.post("/v1/attach")
    async def attach(ask: Ask, request: Request):
        return {"count": await parts["spool"].attach(next(numbers), ask.text, for_upstream(request))}


def add_local_routes(app, parts, numbers):
    @app.post("/v1/speak")
    async def speak(ask: Ask):
        return {"bytes": parts["scratch"].speak()}

    @app.post("/v1/render")
    async def render(ask: Ask):
        return {"status": await parts["renderer"].render(next(numbers))}

    @app.post("/v1/transcode")
    async def transcode(ask: Ask):
        done = await parts["transcoder"].transcode(next(numbers))
        return JSONResponse({"done": done}, status_code=200 if done else 504)

    @app.post("/v1/index")
    async def index(ask: Ask):
        return {"words": await parts["indexer"].index(ask.text)}

    @app.post("/v1/share")
    async def share(ask: Ask):
        return {"bytes": parts["slots"].share(ask.text)}

    @app.get("/healthz")
    async def healthz():
        ready = parts["health"].check()
        return JSONResponse({"ready": ready}, status_code=200 if ready else 503)


def create_app(settings):
    parts = build_parts(settings)
    numbers = itertools.count(1)

    @contextlib.asynccontextmanager
    async def lifespan(_app):
        for part in parts.values():
            await part.start()
        yield
        for part in parts.values():
            await part.stop()

    app = FastAPI(title="scenario", version=VERSION, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(NamePid)
    add_model_routes(app, parts, numbers)
    add_local_routes(app, parts, numbers)

    @app.exception_handler(openai.APIError)
    @app.exception_handler(httpx.HTTPError)
    async def upstream_failed(_request, error):
        return JSONResponse({"error": type(error).__name__}, status_code=502)

    return app


def __getattr__(name):
    """`app` is made when a server first asks for it, so that importing this file needs no environment."""
    if name == "app":
        return create_app(settings_from_environment())
    raise AttributeError(name)

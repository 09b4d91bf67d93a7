"""Runs an ASGI application under uvicorn on loopback and says where: used by the service and the upstream."""
import os
import resource
import socket

import uvicorn


def raise_fd_limit():
    """The leaky services need room to leak in: the soft limit goes up to the hard one (65,536 at most)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft < want:
        resource.setrlimit(resource.RLIMIT_NOFILE, (want, hard))


def listening_socket(port):
    """Bound before the server starts, so that port 0 (any free port) can be used and reported."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(1024)
    return sock


def write_whole(path, text):
    """Readers see either no file or all of it."""
    with open(path + ".part", "w", encoding="ascii") as f:
        f.write(text)
    os.rename(path + ".part", path)


def serve(app, port, port_file, keep_alive_s=30):
    raise_fd_limit()
    sock = listening_socket(port)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=keep_alive_s,
                            timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    if port_file:
        write_whole(port_file, str(sock.getsockname()[1]))
    server.run(sockets=[sock])

"""gunicorn's settings for the scenario service: loopback, any free port, uvicorn workers; tells the port it got."""
import os

from scenario.serving import raise_fd_limit, write_whole

bind = "127.0.0.1:0"
worker_class = "uvicorn.workers.UvicornWorker"
worker_tmp_dir = os.environ["LT_FOLDER"]
graceful_timeout = 5
timeout = 120
loglevel = "info"


def when_ready(server):
    raise_fd_limit()
    write_whole(os.environ["LT_ADDRESS_FILE"], str(server.LISTENERS[0].sock.getsockname()[1]))

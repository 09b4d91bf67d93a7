"""python -m scenario.upstream --port N: runs the upstream until it is told to stop."""
import argparse

from scenario.serving import serve
from scenario.upstream.server import app

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free one, written to --port-file")
    parser.add_argument("--port-file", default=None)
    arguments = parser.parse_args()
    # Idle connections are kept: who closes them is the client's business, and what is being tested.
    serve(app, arguments.port, arguments.port_file, keep_alive_s=3600)

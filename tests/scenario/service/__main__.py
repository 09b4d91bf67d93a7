"""python -m scenario.service --fault NAME[:every=N][,NAME...]: one process of the service under uvicorn."""
import argparse
import os

from scenario.service.app import create_app
from scenario.service.part import Settings, parse_faults
from scenario.serving import serve, write_whole

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", default=os.environ.get("LT_FAULT", ""), help="none: the clean twin")
    parser.add_argument("--upstream", required=True, help="base URL, ending in /v1")
    parser.add_argument("--folder", required=True, help="private folder for databases and spool files")
    parser.add_argument("--tmp", required=True, help="folder for temp files")
    parser.add_argument("--shm-prefix", default="lt-scenario")
    parser.add_argument("--slots", type=int, default=0, help="shared memory segments to work with")
    parser.add_argument("--port", type=int, default=0, help="0: a free one, written to --port-file")
    parser.add_argument("--port-file", default=None)
    parser.add_argument("--pid-file", default=None)
    arguments = parser.parse_args()
    settings = Settings(upstream=arguments.upstream, folder=arguments.folder, tmp=arguments.tmp,
                        shm_prefix=arguments.shm_prefix, slots=arguments.slots,
                        faults=parse_faults(arguments.fault))
    if arguments.pid_file:
        write_whole(arguments.pid_file, str(os.getpid()))
    serve(create_app(settings), arguments.port, arguments.port_file)

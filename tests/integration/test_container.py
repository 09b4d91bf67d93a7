"""A target in other pid, mount, network and IPC namespaces, watched from outside: nothing is missed, nothing invented."""
import os
import signal
import subprocess

import pytest

from scenario import container
from scenario.run import lowtide_json

CAN = subprocess.run(["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "true"], check=False,
                     stderr=subprocess.DEVNULL).returncode == 0


def watched(lowtide, folder, fault):
    """diagnose's (exit status, JSON) of the service in a container."""
    db, run = os.path.join(folder, "lowtide.db"), os.path.join(folder, "run")
    os.mkdir(run)
    box = container.start(run, fault)
    try:
        container.wait_until(box, run, "ready")
        stage = os.path.join(run, "stage")
        selector = f"cmd:scenario\\.service --fault .*{run}"
        with open(os.path.join(folder, "watch.log"), "ab") as log:
            watch = subprocess.Popen([lowtide, "watch", "--target", f"api={selector}", "--interval", "0.2s", "--tmp",
                                      os.path.join(stage, "tmp"), "--db", db], stdout=log, stderr=log)
        try:
            container.sign(run, "go")
            container.wait_until(box, run, "done")
        finally:
            watch.send_signal(signal.SIGINT)
            status = watch.wait()
        container.sign(run, "end")
        assert box.wait() == 0 and status == 0
    finally:
        box.kill()
        box.wait()
    assert not os.listdir(os.path.join(stage, "tmp")), "the temp folder was meant to be visible inside only"
    lowtide_json(lowtide, db, "import", "api", os.path.join(stage, "requests.csv"), "--kind", "requests")
    return lowtide_json(lowtide, db, "diagnose", "api", "--steady")


@pytest.mark.skipif(not CAN, reason="may not make namespaces here (needs root)")
@pytest.mark.parametrize("clean", [False, True], ids=["leaky", "clean"])
def test_container(lowtide, tmp_path, clean):
    scenario = container.SCENARIO
    status, document = watched(lowtide, str(tmp_path), "none" if clean else scenario.fault)
    said = {s["name"]: s["verdict"] for s in document["series"]}
    found = {name for name, verdict in said.items() if verdict in ("leak", "external")}
    if clean:
        assert not found and status == 0, said
    else:
        assert set(scenario.expect) <= found, said
        assert not found & set(scenario.silent()), said
        assert status == 1

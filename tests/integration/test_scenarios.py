"""Every scenario and its clean twin against the real binary: what must be found is, what must not be is not.

Runs are independent of each other and started ahead, a few at a time; a test waits for the run it is about. Nothing here
asserts on elapsed time: a slow machine takes longer and gets the same answer.
"""
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from scenario.catalogue import BY_NAME, SCENARIOS, SERIES
from scenario.run import perform
from scenario.stage import can_isolate

FINDINGS = ("leak", "external")
QUIET = ("ok", "bounded", "retention", "step")
AT_ONCE = max(2, 3 * (os.cpu_count() or 1) // 2)  # half of a core each
NAMES = [s.name for s in SCENARIOS]


def run_of(name, clean):
    """The run that answers for a scenario, or for its clean twin: twins of the same traffic are one run."""
    if not clean:
        return name, False
    return next(s.name for s in SCENARIOS if s.twin() == BY_NAME[name].twin()), True


class Runs:
    """(scenario name, clean) -> the run's Result, made once however many tests ask for it."""

    def __init__(self, binary, folder, wanted):
        self.binary, self.folder = binary, folder
        self.pool = ThreadPoolExecutor(AT_ONCE)
        # Where stages share the machine's /dev/shm, what has lost its maker is told apart by user only (see
        # src/source/shm.h): a run that leaves segments behind then has the machine to itself, after all others.
        apart = can_isolate()
        early = [key for key in wanted if apart or not BY_NAME[key[0]].slots]
        early.sort(key=lambda key: -BY_NAME[key[0]].seconds * BY_NAME[key[0]].lives)  # the longest first, none left over
        self.early = {key: self.pool.submit(self.perform, *key) for key in early}
        self.late, self.lock = {}, threading.Lock()

    def perform(self, name, clean):
        scenario = BY_NAME[name]
        folder = os.path.join(self.folder, name + ("-clean" if clean else ""))
        os.mkdir(folder)
        return perform(scenario, "none" if clean else scenario.fault, folder, self.binary)

    def get(self, name, clean):
        key = run_of(name, clean)
        if key in self.early:
            return self.early[key].result()
        with self.lock:
            if key not in self.late:
                wait(self.early.values())
                self.late[key] = self.pool.submit(self.perform, *key)
                wait([self.late[key]])
        return self.late[key].result()

    def close(self):
        self.pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def runs(request, lowtide, tmp_path_factory):
    wanted = {}
    for item in request.session.items:
        params = getattr(item, "callspec", None)
        if item.module is request.module and params and "name" in params.params:
            wanted[run_of(params.params["name"], "clean" in item.originalname)] = True
    made = Runs(lowtide, str(tmp_path_factory.mktemp("runs")), list(wanted))
    yield made
    made.close()


def expected_growth(plant, result):
    events = sum(result.requests[plant.endpoint, outcome] for outcome in plant.outcomes)
    return events // plant.every * plant.amount


PLANTED = [s.name for s in SCENARIOS if s.plants]


@pytest.mark.parametrize("name", PLANTED)
def test_leak_is_there(runs, name):
    """Counted without lowtide: the fault leaks what its header says, per request."""
    result = runs.get(name, False)
    for plant in BY_NAME[name].plants:
        growth, expected = result.growth(plant.series), expected_growth(plant, result)
        assert expected >= 50, f"{plant.endpoint}: too few requests to plant anything"
        if plant.series == "rss_anon":
            assert growth >= expected, plant.series
        else:
            assert abs(growth - expected) <= plant.slack, f"{plant.series}: grew by {growth}, planted {expected}"


@pytest.mark.parametrize("name", PLANTED)
def test_clean_twin_holds_nothing(runs, name):
    """The same count on the twin: what the fault makes grow by hundreds ends where it began, connection pools aside."""
    result = runs.get(name, True)
    for plant in BY_NAME[name].plants:
        if plant.series != "rss_anon":
            assert abs(result.growth(plant.series)) <= plant.slack, plant.series


@pytest.mark.parametrize("name", NAMES)
def test_leak_is_found(runs, name):
    scenario, result = BY_NAME[name], runs.get(name, False)
    said = {s["name"]: s["verdict"] for s in result.document["series"]}
    for series, right in scenario.expect.items():
        assert said.get(series) in right, f"{series}: {said}"
    wrong = [series for series in scenario.silent() if said.get(series) in FINDINGS]
    assert not wrong, f"accused wrongly: {wrong}: {said}"
    assert result.document["verdict"] == scenario.verdict, result.document["reason"]
    assert result.status == 1


@pytest.mark.parametrize("name", NAMES)
def test_clean_twin_is_silent(runs, name):
    result = runs.get(name, True)
    said = {s["name"]: s["verdict"] for s in result.document["series"]}
    assert not [series for series in SERIES if said.get(series) in FINDINGS], said
    assert result.document["verdict"] in QUIET, result.document["reason"]
    assert result.status == 0


@pytest.mark.parametrize("name", [n for n in PLANTED if any(p.series != "rss_anon" for p in BY_NAME[n].plants)])
def test_growth_per_1k_is_true(runs, name):
    """The growth per 1,000 requests that diagnose gives, against the plain count of what was planted."""
    result = runs.get(name, False)
    total = sum(result.requests.values())
    for plant in BY_NAME[name].plants:
        if plant.series == "rss_anon":
            continue
        truth = expected_growth(plant, result) * plant.tree / total * 1000
        given = result.series(plant.series)["per_1k_requests"]
        assert given is not None, plant.series
        assert abs(given["value"] - truth) <= 0.15 * truth + 1, f"{plant.series}: {given}, planted {truth:.1f}"


def test_watch_ends_well(runs):
    assert runs.early
    for key, future in runs.early.items():
        assert future.result().watch_status == 0, f"{key}: {future.result().watch_log}"


def ends(result, role, cause):
    return [life for life in result.document["lives"] if role in life["role"] and life["cause"] == cause]


def test_recycled_workers_are_lives(runs):
    """gunicorn's workers, recycled by --max-requests: each one a life with its end and how it ended."""
    scenario, result = BY_NAME["recycled-workers"], runs.get("recycled-workers", False)
    total = sum(result.requests.values())
    workers = [life for life in ends(result, "gunicorn", "exit") if life["samples"] >= 10]
    # Each worker takes so many and no more; those at work when the load stopped have no end of their own yet.
    assert len(workers) >= total // (scenario.max_requests + scenario.jitter) - scenario.workers
    assert workers
    assert all(life["end"] and life["start_rss"] for life in workers), workers


def test_killed_lives_are_lives(runs):
    """Six lives by SIGKILL: five ends by signal in the record, five restarts."""
    result = runs.get("shared-memory", False)
    assert len(ends(result, "scenario.service", "signal")) == 5, result.document["lives"]
    assert result.document["restarts"]["count"] == 5

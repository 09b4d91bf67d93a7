"""pytest's view of the tests: where the binary is, and that the package `scenario` can be imported."""
import os
import sys

import pytest

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def lowtide():
    """The binary under test: $LOWTIDE, else build/lowtide. Tests of it without it fail; they are not skipped."""
    path = os.path.abspath(os.environ.get("LOWTIDE", os.path.join(ROOT, "build", "lowtide")))
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not there: run `make` first, or set LOWTIDE")
    return path

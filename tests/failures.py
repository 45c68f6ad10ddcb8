"""What a test leaves behind that has failed: nothing that another could fail by.

The traceback of a failure keeps the frames it went through, and these whatever was open in them: a
socket, a file, a coroutine. It would be let go while another test runs, which the warning about it
would fail.

Law. Who looks at a failure sees all of it: it is let go when the test is over and was reported.
"""

import gc
import sys
import warnings
from collections.abc import Generator
from typing import Final

import pytest

FAILED: Final = pytest.StashKey[bool]()
LAST: Final = ("last_type", "last_value", "last_traceback", "last_exc")  # where pytest keeps one


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that it has failed, at whatever part."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let go of its frames, without a word about what was open in them."""
    done = yield
    if FAILED in item.stash:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in LAST:
                vars(sys).pop(name, None)
            gc.collect()
    return done

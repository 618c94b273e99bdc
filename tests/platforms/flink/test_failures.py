"""The cause of a failed Flink job, from messages as Beam's job server gives them."""

import pytest

from core.errors import InputError
from platforms.flink.failures import FlinkError, java_cause, worker_error

OF_A_WORKER = """\
java.util.concurrent.ExecutionException: java.lang.RuntimeException: Error received from SDK \
harness for instruction 4: Traceback (most recent call last):
  File "apache_beam/runners/common.py", line 1498, in apache_beam.runners.common.DoFnRunner.process
  File "stages.py", line 12, in process
    raise InputError(problem)
{error} [while running 'ReadUnit-ptransform-31']
"""


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        ("core.errors.InputError: a.csv: line 3: no text", InputError, "a.csv: line 3: no text"),
        ("ValueError: bad value", FlinkError, "ValueError: bad value"),
    ],
)
def test_an_error_of_ours_keeps_its_class_and_any_other_is_named(error, kind, text):
    found = worker_error(OF_A_WORKER.format(error=error))
    assert (type(found), str(found)) == (kind, text)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("Pipeline p-1_a failed in state FAILED: java.lang.IllegalStateException: ended", "ended"),
        ("java.lang.RuntimeException: a\n\tat b(C.java)\nCaused by: java.io.IOException: in", "in"),
        ("Traceback (most recent call last):\n  File x\nOSError: no", "OSError: no"),
        ("", ""),
    ],
)
def test_any_other_error_is_its_innermost_cause(message, line):
    assert java_cause(message) == line

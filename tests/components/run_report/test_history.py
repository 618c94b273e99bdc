"""The result of a run in one or two words."""

import pytest

from components.run_report.history import UNFINISHED, describe_result


@pytest.mark.parametrize(
    ("known", "result"),
    [
        (("boom", True, "", "/models/1"), "failed"),
        (("", None, "", ""), UNFINISHED),
        (("", False, "too slow", ""), "not blessed"),
        (("", True, "too slow", ""), "refused"),
        (("", True, "", "/models/1"), "pushed"),
        (("", True, "", ""), "blessed"),
    ],
)
def test_the_first_reason_of_a_run_is_its_result(known, result):
    assert describe_result(*known) == result

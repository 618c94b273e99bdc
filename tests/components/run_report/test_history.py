"""The result of a run in one or two words."""

import pytest

from components.run_report.history import UNFINISHED, result_of


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
    assert result_of(*known) == result

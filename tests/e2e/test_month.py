"""The guide that plays a month: all commands of its page, with the runs of some days."""

import re
import shutil

import pytest

from tests.checkout import CHECKOUT
from tests.e2e.harness import Workspace
from tests.e2e.test_guides import run

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive, pytest.mark.long]

PAGE = CHECKOUT / "docs" / "how-to" / "a-month.md"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
PLAYED = "14 15 19 20 21 25 26 27"
"""The days with a run. The exports of the others are written, which is enough for these."""
ONLY_WRITTEN = f"""\
case " {PLAYED} " in *" $1 "*) ;; *) python -m sample_data.month exports --day $1; exit ;; esac
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return the outputs of the blocks of commands, in their order."""
    workspace = Workspace(tmp_path_factory.mktemp("month"), {})
    # The settings of the page are those of --config.
    workspace.config.unlink()
    found = []
    for language, title, content in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if title:
            start = ONLY_WRITTEN if title == "night.sh" else ""
            (workspace.folder / title).write_text(start + content)
        elif language == "sh":
            commands = content.replace(". .venv/bin/activate\n", "")
            # Only the commands with `|| echo` may fail.
            found.append(run(workspace, f"set -e\nexec 2>&1\n{commands}"))
    yield found
    shutil.rmtree(workspace.folder)


def test_the_month_of_the_guide(outputs):
    _, late, _, slang, learned, swapped, worse, corrected, _, best, asked, back, after, end = (
        outputs
    )
    assert "failed: data.span: span 2026-11-10 of " in late and "exit code 2" in late
    assert "is not there yet; there are 2026-11-01 to 2026-11-09" in late

    def alarm(output):
        return re.search(r"^new span  alarm of severity (\w+) \((.*)\): ", output, re.MULTILINE)

    severity, figures = alarm(slang).groups()
    assert severity == "high" and {"words", "accuracy"} <= set(figures.split(", "))
    assert "accuracy is 0." in slang and "exit code 3" in slang
    assert "\npushed to " in learned and "exit code" not in learned
    assert alarm(swapped).groups() == ("high", "accuracy")
    assert "exit code 3" in swapped
    missed = "below that of the baseline, evaluation.max_accuracy_drop allows 0.05"
    assert missed in worse and "exit code 3" in worse
    assert "\npushed to " in corrected
    assert "words" in alarm(best)[2]
    accuracies = re.findall(r"^accuracy  (\S+)", best, re.MULTILINE)
    assert len(accuracies) == 2 and min(map(float, accuracies)) > 0.98
    # The model of the 26th is unsure of each text that is no summary.
    assert all(0.3 < float(line.split("\t")[1]) < 0.7 for line in asked.splitlines()), asked
    good, bad = re.findall(r"^pushed to .*/(\d+)$", best, re.MULTILINE)
    assert f"serves version {good} again" in back
    assert re.search(rf"^{bad} .* rolled back", back, re.MULTILINE)
    assert missed in after and "exit code 3" in after
    [line] = [line for line in end.splitlines() if " 2026-11-27 " in line]
    assert line.split()[-3:] == ["high", "not", "blessed"]
    assert "november.html" in end

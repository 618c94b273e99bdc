"""The results of a serving check, which ServingCheck writes and RunReport reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tfx.dsl.io import fileio

CHECK_FILE = "check.json"
"""The file of a blessing with all results."""
GOLDEN = "golden_"
"""The beginning of the name of a result of golden sentences; the class follows."""


@dataclass(frozen=True)
class Result:
    """The result of one check.

    Attributes:
      name: the name of the check.
      value: what was measured, in `unit`; of the process a word, or the error.
      threshold: the value that the setting allows or requires; None if there is no limit.
      unit: the unit of the value and the threshold; empty for a number without one.
      cause: the reason why the check failed, in one line; empty if it passed.
    """

    name: str
    value: float | str
    threshold: float | None = None
    unit: str = ""
    cause: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check passed."""
        return not self.cause


@dataclass(frozen=True)
class GoldenMistake:
    """A golden sentence that the candidate answers wrongly.

    Attributes:
      text: the sentence.
      label: the name of its class.
      predicted: the name of the class of the answer; None in an early check, all of which are for
        two classes.
      probability: the probability of the answer; of two classes, that of the second one.
    """

    text: str
    label: str
    predicted: str | None
    probability: float


@dataclass(frozen=True)
class CheckResults:
    """The results of a serving check.

    Attributes:
      results: the results in their order.
      golden_mistakes: the golden sentences that the candidate answers wrongly.
      not_checked: the checks that were skipped, and the reason; empty if none was.
    """

    results: Sequence[Result]
    golden_mistakes: Sequence[GoldenMistake] = ()
    not_checked: str = ""

    @property
    def passed(self) -> bool:
        """Whether the candidate passed all checks."""
        return not self.cause

    @property
    def cause(self) -> str:
        """The reason of the first failed check, and the number of the others; empty without any."""
        causes = [result.cause for result in self.results if not result.passed]
        if not causes:
            return ""
        return f"{causes[0]} (and {len(causes) - 1} more)" if len(causes) > 1 else causes[0]

    def to_json(self) -> dict[str, Any]:
        """Return the results in a form that JSON can represent, with `passed` and `cause`."""
        return {
            "passed": self.passed,
            "cause": self.cause,
            "results": [{**asdict(each), "passed": each.passed} for each in self.results],
            "golden_mistakes": [asdict(mistake) for mistake in self.golden_mistakes],
            "not_checked": self.not_checked,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CheckResults:
        """Return the results that `to_json` converted.

        Args:
          stored: the result of `to_json`, of any version.

        Raises:
          ValueError: a key is missing, or the record is no object of this form.
        """
        try:
            results = [
                Result(*(each[key] for key in ("name", "value", "threshold", "unit", "cause")))
                for each in stored["results"]
            ]
            mistakes = [
                GoldenMistake(
                    each["text"], each["label"], each.get("predicted"), each["probability"]
                )
                for each in stored["golden_mistakes"]
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{CHECK_FILE} is incomplete: {error}") from None
        # Early checks skipped nothing.
        return cls(results, mistakes, stored.get("not_checked", ""))


def write_check(folder: str, found: CheckResults) -> None:
    """Write CHECK_FILE to a folder, which is created.

    Raises:
      OSError, tensorflow.errors.OpError: the file cannot be written.
    """
    fileio.makedirs(folder)
    with fileio.open(os.path.join(folder, CHECK_FILE), "w") as file:
        file.write(json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n")


def read_check(folder: str) -> CheckResults:
    """Return what `write_check` wrote to a folder.

    Raises:
      tfx.dsl.io.fileio.NotFoundError: the file was deleted.
      ValueError: the file is damaged.
    """
    with fileio.open(os.path.join(folder, CHECK_FILE)) as file:
        return CheckResults.from_json(json.loads(file.read()))

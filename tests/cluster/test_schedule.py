"""Schedules of a pipeline with spans, on a real Kubeflow Pipelines."""

import datetime
import json
import random
import re
import time
from collections import Counter

import pytest
import tensorflow as tf

from components.evaluator import new_span
from components.examples import read_spans
from platforms.follow import ENDS
from serving.drift.compare import Comparison
from tests.waiting import wait

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]

EVERY_MINUTE = "* * * * *"
TIME = "{{workflow.labels.scheduledworkflows.kubeflow.org/workflowEpoch}}"
GOOD, BAD = ("great", "love", "perfect"), ("awful", "broken", "refund")
WINDOW = 3
# The models are not good, and are pushed nevertheless.
PUSHED = (
    "evaluation.min_accuracy=0",
    "evaluation.min_class_recall=0",
    "evaluation.max_accuracy_drop=1",
    "serving_check.min_golden=0",
)


class Daily:
    """A pipeline with spans, which has a name and a folder of its own on the cluster."""

    def __init__(self, user):
        name = f"schedule-{int(time.time())}"
        self._user, self._schedules, self._experiment = user, [], None
        self.root = f"{user.config.paths.root}/{name}"
        self._exports = f"{self.root}/exports"
        settings = (
            f"name={name}",
            f"paths.root={self.root}",
            f"paths.serving={self.root}/serving",
            f"paths.checkpoints={self.root}/checkpoints",
            f"data.input_base={self._exports}/{{YYYY}}-{{MM}}-{{DD}}",
            f"data.window={WINDOW}",
            *PUSHED,
        )
        self._settings = [word for each in settings for word in ("--set", each)]

    def write(self, date, count=300):
        """Write the span of a date, with words of its own."""
        chance = random.Random(date.toordinal())
        lines = []
        for number in range(count):
            label = 1 + number % 2
            words = [*chance.choices((BAD, GOOD)[label - 1], k=3), f"{date}", f"number{number}"]
            lines.append(f"__label__{label} {' '.join(words)}\n")
        folder = f"{self._exports}/{date}"
        tf.io.gfile.makedirs(folder)
        with tf.io.gfile.GFile(f"{folder}/reviews.txt", "w") as file:
            file.write("".join(lines))

    def start(self, *words):
        """Create the schedule of a run every minute; return what the command printed."""
        lines = self._user("schedule", "--cron", EVERY_MINUTE, *self._settings, *words)
        self._schedules += re.findall(r"/#/recurringrun/details/(\S+)", lines)
        recurring = self._user.client.get_recurring_run(self._schedules[-1])
        self._experiment = recurring.experiment_id
        return lines

    def remove(self):
        """Remove the schedule; return what the command printed."""
        return self._user("schedule", "--remove", *self._settings)

    def run(self, number):
        """Wait for the run of the newest schedule with a number, from 1; return it."""
        wait(lambda: len(self._runs(self._schedules[-1:])) >= number, 2400, pause=5)
        return self._runs(self._schedules[-1:])[number - 1]

    def _runs(self, schedules):
        listed = self._user.client.list_runs(
            page_size=100, sort_by="created_at desc", experiment_id=self._experiment
        )
        found = [each for each in listed.runs or [] if each.recurring_run_id in schedules]
        return sorted(found, key=lambda each: each.created_at)

    def wait_for(self, run, *tasks):
        """Wait until the run has started one of the tasks, or has ended."""
        wait(
            lambda: self._user.executors(run.run_id).keys() & set(tasks) or self.state(run) in ENDS,
            2400,
            pause=5,
        )

    def state(self, run):
        """Return the state of the run."""
        return self._user.client.get_run(run.run_id).state

    def log(self, run, task):
        """Return the log of a task of the run."""
        return self._user.log(self._user.executors(run.run_id)[task])

    def artifact(self, run, task, name):
        """Return the artifact of the run that a task wrote."""
        artifacts = self._user.artifacts(run.run_id)
        [found] = [
            each for each in artifacts if f"/{task}/" in each.uri and each.uri.endswith(f"/{name}")
        ]
        return found

    def newest_span(self, run):
        """Return the newest span that the run has read."""
        rejected = self.artifact(run, "ReviewExampleGen", "rejected")
        return rejected.custom_properties["newest_span"].string_value

    def stop(self):
        """Cancel the runs that have not ended, and remove the schedule."""
        if "stopped the schedule" in self.remove():
            for run in self._runs(self._schedules):
                if self.state(run) not in ENDS:
                    self._user.client.terminate_run(run.run_id)
                    wait(lambda run=run: self.state(run) in ENDS, 300, pause=5)
            self.remove()

    def close(self):
        """Remove everything from the cluster."""
        self.stop()
        tf.io.gfile.rmtree(self.root)


@pytest.fixture
def daily(kubeflow):
    """A `Daily`, whose schedule is removed in the end."""
    daily = Daily(kubeflow)
    yield daily
    daily.close()


def test_each_run_reads_the_span_that_has_arrived_and_reuses_the_older_ones(daily):
    first = datetime.date(2026, 2, 25)
    days = [first + datetime.timedelta(number) for number in range(WINDOW + 2)]
    for day in days[:WINDOW]:
        daily.write(day, count=300 + day.day)
    printed = daily.start()
    assert f"at {EVERY_MINUTE} UTC" in printed
    for number, newest in enumerate(days[WINDOW - 1 :], 1):
        run = daily.run(number)
        daily.wait_for(run, "Trainer")
        # The next run starts as soon as this one ends.
        if number < WINDOW:
            daily.write(days[WINDOW - 1 + number], count=300 + days[WINDOW - 1 + number].day)
        else:
            assert f"its removal would end {run.display_name}, which is" in daily.remove()
        wait(lambda run=run: daily.state(run) in ENDS, 2400, pause=5)
        assert daily.state(run) == "SUCCEEDED", daily.log(run, "ReviewExampleGen")

        assert daily.newest_span(run) == str(newest)
        new, reused = (WINDOW, 0) if number == 1 else (1, WINDOW - 1)
        log = daily.log(run, "ReviewExampleGen")
        assert f"Spans: {new} are read, {reused} are reused" in log
        examples = daily.artifact(run, "ReviewExampleGen", "examples").uri
        counts = json.loads(tf.io.gfile.GFile(f"{examples}/example_counts.json").read())
        spans = read_spans(examples)
        by_split = {split: Counter() for split in ("train", "eval", "test")}
        for path, count in counts.items():
            split = re.match("Split-([a-z]+)/", path)[1]
            by_split[split][spans[f"{examples}/{path}"]] += count
        known = (newest - datetime.date(1970, 1, 1)).days
        assert dict(by_split["test"]) == {known: 300 + newest.day}
        assert set(by_split["train"]) == set(range(known - WINDOW + 1, known))

        evaluation = daily.artifact(run, "Evaluator", "evaluation").uri
        page = tf.io.gfile.GFile(daily.artifact(run, "RunReport", "report").uri).read()
        comparison = new_span.read(evaluation)
        if number == 1:
            assert comparison is None
        else:
            assert isinstance(comparison, Comparison)
            assert "Does the served model still fit?" in page
        assert "Pushed to" in daily.log(run, "Pusher")
    assert len(tf.io.gfile.listdir(f"{daily.root}/serving")) == len(days) - WINDOW + 1
    assert "removed the schedule" in daily.remove()
    assert "has no schedule" in daily.remove()


def test_the_time_of_the_schedule_names_the_span(daily):
    today = datetime.datetime.now(datetime.timezone.utc).date()
    for day in range(-WINDOW - 1, 2):
        daily.write(today + datetime.timedelta(day))
    for delay in ("-1d", ""):
        daily.start("--parameter", f"span={TIME}{delay}")
        run = daily.run(1)
        daily.wait_for(run, "Transform")
        expected = run.scheduled_at.date() - datetime.timedelta(1 if delay else 0)
        assert daily.newest_span(run) == str(expected)
        daily.stop()


def test_a_run_without_the_span_of_its_day_ends_with_one_line(daily):
    today = datetime.datetime.now(datetime.timezone.utc).date()
    for day in range(-WINDOW - 1, -1):
        daily.write(today + datetime.timedelta(day))
    daily.start("--parameter", f"span={TIME}-1d")
    run = daily.run(1)
    wait(lambda: daily.state(run) in ENDS, 2400, pause=5)
    assert daily.state(run) == "FAILED"
    lines = daily.log(run, "ReviewExampleGen").splitlines()
    [line] = [line for line in lines if "is not there yet" in line]
    day = run.scheduled_at.date() - datetime.timedelta(1)
    assert re.search(f"data.span: span {day} of .* is not there yet; there are ", line)

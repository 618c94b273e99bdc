"""Replicas that fail again and again: after which exit codes and how often they are restarted."""

import logging

import pytest

from pipeline.cluster_settings import RUNTIME
from platforms.jobs import jobset as job_set_manifest
from platforms.jobs.follow import JobFailed
from platforms.jobs.jobset import JobSet
from platforms.jobs.pods import Pod
from platforms.jobs.trainjob import TrainJob
from tests.platforms.jobs.ground import Ground, in_background, lines
from tests.platforms.jobs.manifests import pod_with
from tests.waiting import wait


@pytest.mark.parametrize("code", [128, 133, 140])
def test_a_code_without_a_named_cause_is_a_reason_to_restart(ground, log, code):
    script = (
        "mark = os.path.join(FOLDER, 'mark')\n"
        "if me == 'worker 0' and not os.path.exists(mark):\n"
        "    open(mark, 'w')\n"
        f"    sys.exit({code})\n"
        "if me == 'worker 0': print('after')\n"
        "wait_for('end')"
    )
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: "[worker 0] after" in lines(log))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert ground.operator.restarts == 1


def test_the_greatest_permanent_code_fails_the_job(ground):
    script = (
        "if me == 'worker 0':\n    print('no such program')\n    sys.exit(127)\ntime.sleep(600)"
    )
    with pytest.raises(JobFailed, match="worker 0 ended with exit code 127: no such program"):
        ground.run(script)
    assert ground.operator.restarts == 0


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (127, "ended with exit code 127"),
        (128, "ended with exit code 128"),
        (133, "was killed, exit code 133"),
        (255, "ended with exit code 255"),
    ],
)
def test_only_the_code_of_a_signal_is_a_kill(code, text):
    assert Pod.read(pod_with(code, "trains"), "chief", "trains").end_text == text


class TestRestartsOfTheWholeJobSet:
    """A failure without an exit code counts for the limit of a Job, and then for `maxRestarts`.

    The operator of a TFJob has no such limit; there the step counts the restarts.
    """

    SCRIPT = (
        "if me == 'worker 0': print('attempt of process', os.getpid())\n"
        "wait_for('end' if me.startswith('chief') else 'never')"
    )

    @pytest.fixture(params=[JobSet(), TrainJob()], ids=lambda kind: kind.name)
    def limited(self, server, operator, log, tmp_path, monkeypatch, request):
        """A Job fails at its second failure, and a JobSet at the second failure of its Jobs."""
        monkeypatch.setattr(job_set_manifest, "MOST_RESTARTS", 1)
        spec = server.runtimes[RUNTIME]["spec"]["template"]["spec"]
        spec["failurePolicy"]["maxRestarts"] = 1
        spec["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 1
        return Ground(server, operator, tmp_path, request.param)

    def start_and_reject(self, ground, log, times):
        """Start a job whose worker fails; return its thread and errors when it runs no more."""

        def attempts():
            return [line for line in lines(log) if line.startswith("[worker 0] attempt")]

        thread, raised = in_background(lambda: ground.run(self.SCRIPT))
        for number in range(1, times + 1):
            wait(lambda number=number: len(attempts()) == number)
            ground.operator.reject(ground.jobs[0], "worker 0")
        return thread, raised, attempts

    def test_fewer_failures_than_the_limit_are_no_failure(self, limited, log):
        thread, raised, attempts = self.start_and_reject(limited, log, 3)
        wait(lambda: len(attempts()) == 4)
        assert limited.jobs[0]["status"]["restarts"] == 1
        if limited.kind.name == "jobset":
            [restarting] = limited.jobs[0]["status"]["conditions"]
            assert restarting["type"] == "RestartingJobSet"
            wait(lambda: restarting["status"] == "False")
        limited.release("end")
        thread.join(120)
        assert raised == []

    def test_more_failures_fail_the_job_with_the_last_lines_of_the_replica(self, limited, log):
        thread, raised, attempts = self.start_and_reject(limited, log, 4)
        thread.join(120)
        [error] = raised
        assert isinstance(error, JobFailed)
        last = attempts()[-1].removeprefix("[worker 0] ")
        cause = f"worker 0 was terminated (UnexpectedAdmissionError): {last}; before that chief"
        assert f"{limited.kind.title} amazon-reviews-" in str(error) and cause in str(error)
        [record] = [each for each in log.records if each.levelno == logging.ERROR]
        title, *shown = record.getMessage().splitlines()
        assert title == "The last lines of worker 0:"
        assert shown == [line.removeprefix("[worker 0] ") for line in attempts()]
        [job] = limited.jobs
        [failed] = limited.kind.conditions(job)
        assert failed.message.startswith("jobset failed due to reaching max number of restarts")

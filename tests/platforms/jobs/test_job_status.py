"""What the kinds of jobs read from pods."""

import pytest

from platforms.jobs.jobset.status import JobSet
from platforms.jobs.trainjob.status import TrainJob


@pytest.mark.parametrize("kind", [JobSet(), TrainJob()], ids=lambda kind: kind.name)
def test_a_pod_without_an_index_does_not_end_the_step(kind):
    """Such as a pod that an administrator added to the job by its label."""
    assert kind.replica_of({"metadata": {"name": "debug"}}, {"spec": {}}) is not None

"""Replicas that the cluster ends: for a pod of a higher priority, for a spot node, for a queue."""

from platforms.jobs.pod_template import QUEUE_LABEL
from tests.platforms.jobs.ground import in_background, lines
from tests.platforms.jobs.kueue import Kueue
from tests.waiting import wait

SCRIPT = """
mark = os.path.join(FOLDER, me)
print(me, 'is back' if os.path.exists(mark) else 'starts')
open(mark, 'w')
wait_for('end')
"""


def uids(ground):
    [job] = ground.jobs
    pods = ground.server.pods_of(job)
    return {ground.kind.replica_of(pod, job): pod["metadata"]["uid"] for pod in pods}


def test_a_preempted_pod_is_replaced_and_the_other_replicas_stay(ground, log):
    thread, raised = in_background(lambda: ground.run(SCRIPT))
    for name in ("[chief] chief 0", "[worker 0] worker 0"):
        wait(lambda line=f"{name} starts": line in lines(log))
    before = uids(ground)
    ground.operator.preempt(ground.jobs[0], "worker 0")
    wait(lambda: "[worker 0] worker 0 is back" in lines(log))
    after = uids(ground)
    assert after["chief"] == before["chief"] and after["worker 0"] != before["worker 0"]
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert any("worker 0 was restarted" in line for line in lines(log))
    assert not any("chief was restarted" in line for line in lines(log))


def test_a_queue_admits_a_job_evicts_it_and_admits_it_again(ground, log):
    kueue = Kueue(ground.server)
    manifest = ground.manifest(SCRIPT)
    manifest["metadata"]["labels"][QUEUE_LABEL] = "team-a"
    thread, raised = in_background(lambda: ground.run_manifest(manifest, refused_seconds=0.2))
    suspended = f"the {ground.kind.title} is suspended; it starts when its queue (kubeflow.queue)"
    wait(lambda: any(suspended in line for line in lines(log)))
    [job] = ground.jobs
    assert not ground.operator.running
    kueue.admit(job)
    wait(lambda: "[worker 0] worker 0 starts" in lines(log))
    kueue.evict(job)
    wait(lambda: not ground.server.pods_of(job))
    kueue.admit(job)
    wait(lambda: "[worker 0] worker 0 is back" in lines(log))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert len(ground.server.find_requests("POST", ground.path)) == 1

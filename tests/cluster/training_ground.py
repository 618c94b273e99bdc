"""A namespace of a real cluster in which training jobs run, with scripts in place of a training."""

import contextlib
import copy
import os
import re
import secrets
from pathlib import Path
from unittest import mock

import pytest
import yaml
from kubernetes import client, config, dynamic
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

from core.errors import InputError
from platforms.kubernetes_api import connect
from platforms.training_jobs import job as training_job
from platforms.training_jobs import kubernetes
from platforms.training_jobs.client import JobClient
from platforms.training_jobs.kinds import KINDS
from serving.versions import MODEL_FILE, VARIABLES_INDEX
from tests.checkout import CHECKOUT
from tests.kubeflow_files import training_objects
from tests.platforms.training_jobs.manifests import make_job, make_settings
from tests.waiting import in_background

CLAIM = "reviews-training"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
PREAMBLE = """
import json, os, signal, socket, sys, time
from trainer_module.cluster.tf_config import set_tf_config
set_tf_config(os.environ)
config = json.loads(os.environ.get("TF_CONFIG", "null"))
me = "{type} {index}".format(**config["task"]) if config else "alone"
def wait_for(word):
    while not os.path.exists(os.path.join(FOLDER, word)): time.sleep(0.1)
def is_first():
    known = os.path.join(FOLDER, me)
    if os.path.exists(known): return False
    open(known, "w").close()
    return True
"""


class Cluster:
    """The cluster of the current kube context, and a namespace that forbids unrestricted pods.

    Attributes:
      namespace: the name of the namespace.
      folder: a folder that this machine and the pods share under the same path.
      image: the image of the pods.
    """

    def __init__(self, folder: Path, image: str):
        config.load_kube_config(config_file=os.environ.get("KUBECONFIG") or None)
        self.image = image
        self.namespace = f"amazon-reviews-test-{secrets.token_hex(4)}"
        self.folder = folder
        self.core = client.CoreV1Api()
        self.custom = client.CustomObjectsApi()
        self._api = dynamic.DynamicClient(client.ApiClient())
        self._host = client.Configuration.get_default_copy()

    def __enter__(self):
        metadata = {"name": self.namespace, "labels": RESTRICTED}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        size = {"storage": "1Gi"}
        volume = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        path = {"hostPath": {"path": str(self.folder)}, "capacity": size}
        bound = {"claimRef": {"namespace": self.namespace, "name": CLAIM}}
        named = {"metadata": {"name": self.namespace}, "spec": {**volume, **path, **bound}}
        self.apply({"apiVersion": "v1", "kind": "PersistentVolume", **named})
        claimed = {**volume, "resources": {"requests": size}, "volumeName": self.namespace}
        claim = {"metadata": {"name": CLAIM}, "spec": claimed}
        self.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim})
        policy, runtime = training_objects()
        policy["metadata"].pop("namespace")
        self.apply(policy)
        # Without Kubeflow Trainer there is no such kind, or only in the client's cache in a file.
        with contextlib.suppress(NotFoundError, ResourceNotFoundError):
            self.apply(runtime)
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        return self

    def __exit__(self, *unused):
        self.core.delete_namespace(self.namespace)
        self.core.delete_persistent_volume(self.namespace)

    def apply(self, manifest):
        """Create or change an object, in the namespace if its kind has one."""
        manifest = copy.deepcopy(manifest)
        kind = self._api.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
        if kind.namespaced:
            manifest["metadata"]["namespace"] = self.namespace
        self._api.server_side_apply(
            kind, manifest, manifest["metadata"]["name"], self.namespace, field_manager="tests"
        )

    def kube_config(self, account, without=()):
        """Return the path of a kube config with a token of an account with the guide's Role.

        Args:
          account: the name of the account, which is created.
          without: a verb and a resource that the Role lacks.
        """
        guide = (CHECKOUT / "docs/how-to/kubeflow.md").read_text(encoding="utf-8")
        [text] = re.findall(r"```yaml\n(apiVersion: rbac.*?)```", guide, re.DOTALL)
        role, binding = yaml.safe_load_all(text)
        role["rules"] = [
            {"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": [verb]}
            for rule in role["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if (verb, resource) != without
        ]
        role["metadata"]["name"] = binding["metadata"]["name"] = account
        binding["roleRef"]["name"] = account
        subject = {"kind": "ServiceAccount", "name": account}
        binding["subjects"] = [{**subject, "namespace": self.namespace}]
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}})
        self.apply(role)
        self.apply(binding)
        request = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=7200)
        )
        token = self.core.create_namespaced_service_account_token(account, self.namespace, request)
        cluster = {"server": self._host.host}
        if self._host.ssl_ca_cert:
            cluster["certificate-authority"] = self._host.ssl_ca_cert
        file = self.folder / f"{self.namespace}-{account}.kubeconfig"
        content = {
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token.status.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        file.touch(0o600)
        file.write_text(yaml.safe_dump(content))
        return str(file)


class Ground:
    """Jobs of one kind whose pods run a script."""

    def __init__(self, cluster, kind, folder):
        self.cluster, self.kind, self.folder = cluster, kind, folder
        self.api = connect()
        self.client = JobClient(self.api, kind, cluster.namespace)
        self.model = folder / "model"
        # A job whose model is complete is not repeated after its success.
        for name in (MODEL_FILE, VARIABLES_INDEX, "variables/variables.data-00000-of-00001"):
            file = self.model / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("any")

    def training(self, strategy="multi_worker_mirrored", workers=2):
        job = make_job(str(self.model), strategy=strategy, workers=workers)
        return job.model_copy(update={"checkpoint_dir": str(self.folder)})

    def manifest(self, script="", *, strategy="multi_worker_mirrored", workers=2, **settings):
        """Return a manifest whose pods run a script after PREAMBLE."""
        job = self.training(strategy, workers)
        text = f"FOLDER = {str(self.folder)!r}{PREAMBLE}{script}"
        with mock.patch.object(training_job, "_COMMAND", ("python", "-uc", text)):
            return self.kind.make_manifest(job, "job.json", self.settings(**settings))

    def settings(self, **settings):
        given = {
            "kind": self.kind.name,
            "image": self.cluster.image,
            "namespace": self.cluster.namespace,
            "volume_claim": CLAIM,
            "volume_mount": str(self.cluster.folder),
            "poll_seconds": 0.5,
            "pod": {"terminationGracePeriodSeconds": 3},
        }
        return make_settings(**given | settings)

    def follow(self, manifest, timeout_seconds=600.0):
        """Run a job as the step does."""
        settings = self.settings(timeout_seconds=timeout_seconds)
        kubernetes.run(self.client, manifest, self.training(), settings)

    def start(self, manifest):
        """Run a job in a thread; return the thread and the list of what it raises."""
        return in_background(lambda: self.follow(manifest))

    def job(self, manifest):
        return self.client.get(manifest["metadata"]["name"])

    def pods(self, manifest):
        """Return the pods of a job by their replicas, the newest of each."""
        job = self.job(manifest)
        pods = self.client.pods(job) if job else []
        return {each.replica: each for each in sorted(pods, key=lambda pod: pod.created_at)}

    def suspend(self, manifest, suspended):
        """Suspend a job or continue it, as a queue does."""
        kind, spec = self.kind, {"suspend": suspended}
        place = (kind.group, kind.version, self.cluster.namespace, f"{kind.name}s")
        body = {"spec": {"runPolicy": spec} if kind.name == "tfjob" else spec}
        name = manifest["metadata"]["name"]
        self.cluster.custom.patch_namespaced_custom_object(*place, name, body)

    def evict(self, manifest, replica):
        """Evict a pod as `kubectl drain` does."""
        name = self.pods(manifest)[replica].name
        metadata = client.V1ObjectMeta(name=name, namespace=self.cluster.namespace)
        eviction = client.V1Eviction(metadata=metadata)
        self.cluster.core.create_namespaced_pod_eviction(name, self.cluster.namespace, eviction)


def skip_without(kind):
    """Skip the test if the cluster has no jobs of a kind."""
    try:
        JobClient(connect(), kind, "default").get("any")
    except InputError as error:
        pytest.skip(str(error))


def kind_named(name):
    return next(each for each in KINDS if each.name == name)

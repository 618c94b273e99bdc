"""A test double of the Vertex AI API: a gRPC server with the API's own messages."""

import contextlib
import re
import threading
import time
from concurrent import futures

import grpc
from google.cloud.aiplatform_v1 import types
from google.longrunning import operations_pb2
from google.protobuf import any_pb2, empty_pb2, json_format

# The API returns the number of the project, even if a request contains its id.
PARENT = "projects/123456/locations/europe-west4"
STATES = types.JobState


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class VertexServer(grpc.GenericRpcHandler):
    """A server with the responses of the service, including its errors.

    Attributes:
      address: host:port.
      requests: (method, message) of each received request.
      jobs, pipeline_jobs, models, endpoints: resource name -> message.
      states: the states of a run, one for each request of the state; the last one is repeated.
      on_create: called with each new CustomJob.
      slow: methods whose operations stay unfinished until `finish`.
    """

    def __init__(self):
        self.requests = []
        self.jobs, self.models, self.endpoints = {}, {}, {}
        self.pipeline_jobs, self.schedules = {}, {}
        self.states = [{"state": types.PipelineState.PIPELINE_STATE_SUCCEEDED}]
        self.on_create = lambda job: None
        self.slow = set()
        self.lock = threading.RLock()
        self._operations = {}
        self._failures = []
        self._number = 0
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers([self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self):
        self._server.stop(None).wait()

    def connect(self, service, region="europe-west4"):
        """A replacement of `platforms.vertex.api.connect`."""
        channel = grpc.insecure_channel(self.address, [("grpc.enable_http_proxy", 0)])
        return service(transport=service.get_transport_class("grpc")(channel=channel))

    def fail(self, method, code, message="", *, times=1, done=False):
        """Respond to the next requests with an error; `done`: after their execution."""
        self._failures += [(method, code, message, done)] * times

    def find_requests(self, method):
        return [message for name, message in self.requests if name == method]

    def end_job(self, job, state, message=""):
        with self.lock:
            job.state = state
            if message:
                job.error = {"code": 9, "message": message}

    def finish(self):
        """Finish the slow operations."""
        with self.lock:
            self.slow.clear()
            for name in self._operations:
                self._finish(name)

    # The services.

    def CreateCustomJob(self, request):
        job = types.CustomJob(request.custom_job)
        job.name = f"{self._parent(request)}/customJobs/{self._next()}"
        job.create_time = self._now()
        job.state = STATES.JOB_STATE_PENDING
        self.jobs[job.name] = job
        self.on_create(job)
        return job

    def GetCustomJob(self, request):
        return self._get(self.jobs, request.name)

    def ListCustomJobs(self, request):
        self._parent(request)
        key, value = re.fullmatch(r'labels\.([a-z_]+)="([a-z0-9_-]+)"', request.filter).groups()
        found = [job for job in self.jobs.values() if job.labels.get(key) == value]
        return types.ListCustomJobsResponse(custom_jobs=found)

    def CancelCustomJob(self, request):
        self.end_job(self._get(self.jobs, request.name), STATES.JOB_STATE_CANCELLED)
        return empty_pb2.Empty()

    def CreatePipelineJob(self, request):
        name = f"{self._parent(request)}/pipelineJobs/{request.pipeline_job_id}"
        if name in self.pipeline_jobs:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"{name} already exists")
        self.pipeline_jobs[name] = types.PipelineJob(request.pipeline_job, name=name)
        return self.pipeline_jobs[name]

    def GetPipelineJob(self, request):
        job = self._get(self.pipeline_jobs, request.name)
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return types.PipelineJob(job, **state)

    def CreateSchedule(self, request):
        name = f"{self._parent(request)}/schedules/{self._next()}"
        self.schedules[name] = types.Schedule(request.schedule, name=name)
        return self.schedules[name]

    def ListSchedules(self, request):
        return types.ListSchedulesResponse(schedules=self._with_name(self.schedules, request))

    def DeleteSchedule(self, request):
        name = self._get(self.schedules, request.name).name

        def do():
            del self.schedules[name]
            return empty_pb2.Empty()

        return self._operation("DeleteSchedule", name, do)

    def UploadModel(self, request):
        assert re.fullmatch("[a-z_][a-z0-9_-]{0,62}", request.model_id)
        model = types.Model(request.model)
        model.name = f"{self._parent(request)}/models/{request.model_id}"
        uploading = any(not each.done for each in self._of(model.name))
        if model.name in self.models or uploading:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"{model.name} already exists")

        def do():
            model.create_time = self._now()
            self.models[model.name] = model
            return types.UploadModelResponse(model=model.name, model_version_id="1")

        return self._operation("UploadModel", model.name, do)

    def GetModel(self, request):
        return self._get(self.models, request.name)

    def ListModels(self, request):
        return types.ListModelsResponse(models=self._with_name(self.models, request))

    def UpdateModel(self, request):
        model = self._get(self.models, request.model.name)
        assert list(request.update_mask.paths) == ["labels"]
        model.labels = request.model.labels
        return model

    def CreateEndpoint(self, request):
        endpoint = types.Endpoint(request.endpoint)
        endpoint.name = f"{self._parent(request)}/endpoints/{request.endpoint_id or self._next()}"
        if endpoint.name in self.endpoints:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"{endpoint.name} already exists")
        endpoint.create_time = self._now()
        self.endpoints[endpoint.name] = endpoint
        return self._operation("CreateEndpoint", endpoint.name, lambda: endpoint)

    def GetEndpoint(self, request):
        return self._get(self.endpoints, request.name)

    def ListEndpoints(self, request):
        return types.ListEndpointsResponse(endpoints=self._with_name(self.endpoints, request))

    def UpdateEndpoint(self, request):
        endpoint = self._get(self.endpoints, request.endpoint.name)
        assert list(request.update_mask.paths) == ["traffic_split"]
        endpoint.traffic_split = request.endpoint.traffic_split
        return endpoint

    def DeployModel(self, request):
        endpoint = self._get(self.endpoints, request.endpoint)
        deployed = types.DeployedModel(request.deployed_model)
        model = self._get(self.models, deployed.model)
        deployed.model = model.name
        deployed.id = str(self._next())

        def do():
            endpoint.deployed_models.append(deployed)
            return types.DeployModelResponse(deployed_model=deployed)

        return self._operation("DeployModel", endpoint.name, do)

    def UndeployModel(self, request):
        endpoint = self._get(self.endpoints, request.endpoint)
        if dict(endpoint.traffic_split).get(request.deployed_model_id):
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "it still has traffic")

        def do():
            kept = [d for d in endpoint.deployed_models if d.id != request.deployed_model_id]
            endpoint.deployed_models = kept
            return types.UndeployModelResponse()

        return self._operation("UndeployModel", endpoint.name, do)

    def GetOperation(self, request):
        return self._get(self._operations, request.name)[0]

    def ListOperations(self, request):
        found = self._of(request.name.replace("my-project", "123456"))
        return operations_pb2.ListOperationsResponse(operations=found)

    # The responses.

    def service(self, details):
        """Return the handler of a method of any service, as grpc.GenericRpcHandler."""
        name = details.method.rpartition("/")[2]
        kind = getattr(types, f"{name}Request", None)
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._answer(name, request, context),
            kind.deserialize if kind else getattr(operations_pb2, f"{name}Request").FromString,
            serialized,
        )

    def _answer(self, name, request, context):
        with self.lock:
            self.requests.append((name, request))
            failure = next((each for each in self._failures if each[0] == name), None)
            if failure:
                self._failures.remove(failure)
                if failure[3]:
                    getattr(self, name)(request)
                context.abort(failure[1], failure[2])
            try:
                return getattr(self, name)(request)
            except Refused as refused:
                context.abort(refused.code, str(refused))

    def _operation(self, method, resource, do):
        name = f"{resource}/operations/{self._next()}"
        self._operations[name] = (operations_pb2.Operation(name=name), do)
        if method not in self.slow:
            self._finish(name)
        return self._operations[name][0]

    def _finish(self, name):
        operation, do = self._operations[name]
        if not operation.done:
            answer = do()
            packed = any_pb2.Any()
            packed.Pack(type(answer).pb(answer) if hasattr(type(answer), "pb") else answer)
            operation.response.CopyFrom(packed)
            operation.done = True

    def _of(self, resource):
        operations = [operation for operation, _ in self._operations.values()]
        return [each for each in operations if each.name.startswith(f"{resource}/")]

    def _parent(self, request):
        if request.parent != "projects/my-project/locations/europe-west4":
            raise Refused(grpc.StatusCode.NOT_FOUND, f"{request.parent} is not found")
        return PARENT

    def _get(self, resources, name):
        numbered = name.replace("my-project", "123456")
        if numbered not in resources:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"{name} is not found")
        return resources[numbered]

    def _with_name(self, resources, request):
        self._parent(request)
        [name] = re.fullmatch('display_name="([^"]+)"', request.filter).groups()
        return [each for each in resources.values() if each.display_name == name]

    def _next(self):
        self._number += 1
        return self._number

    def _now(self):
        # Distinct times: a resource that is created later has a later time.
        return {"seconds": int(time.time()), "nanos": self._next() * 1000}


def serving():
    return contextlib.closing(VertexServer())


def as_json(message):
    return json_format.MessageToDict(type(message).pb(message))


def serialized(message):
    if hasattr(type(message), "pb"):
        message = type(message).pb(message)
    return message.SerializeToString()

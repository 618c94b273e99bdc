"""New versions while the server answers."""

import errno
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import tensorflow as tf

from components.saved_models import copy_model
from core.errors import ServerError
from preprocessing.labels import Labels, write_labels
from serving.rest import versions as served
from serving.rest.batching import Batcher
from serving.rest.metrics import Metrics
from serving.rest.model import LoadedModel
from serving.rest.versions import ServedVersions
from serving.versions import NoModelError, versions
from tests.serving.rest.models import TOPICS, push, push_broken, push_classes
from tests.serving.rest.running import MODEL, running
from tests.waiting import wait

CLIENTS, PUSHES = 4, 4


def probability(version):
    return round(0.5 + version / 100, 4)


@pytest.fixture
def folder(tmp_path):
    push(tmp_path / "serving", 1, probability(1))
    return tmp_path / "serving"


def states(server):
    status = server.get(MODEL).json["model_version_status"]
    return {int(one["version"]): one["state"] for one in status}


def problem(server, version):
    [status] = server.get(f"{MODEL}/versions/{version}").json["model_version_status"]
    return status["status"]["error_message"]


def answers_until(stop, server):
    """Send requests until `stop` is set; return the answers in their order."""
    answers = []
    while not stop.is_set():
        answers.append(server.predict("good", "bad", "good"))
    return answers


@pytest.mark.slow
def test_pushes_under_load_fail_no_request_and_mix_no_versions(folder):
    stop = threading.Event()
    with running(folder, poll_seconds=0.05) as server, ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(answers_until, stop, server) for _ in range(CLIENTS)]
        for version in range(2, PUSHES + 2):
            push(folder, version, probability(version))
            wait(lambda: server.versions.current.version == version)  # noqa: B023
        stop.set()
        of_clients = [client.result() for client in clients]
        last = server.predict("good")
    seen = set()
    for answers in of_clients:
        assert answers
        versions = []
        for answer in answers:
            assert answer.status == 200, answer
            version = int(answer.headers["x-model-version"])
            good, rest = probability(version), 1 - probability(version)
            got = [one["probability"] for one in answer.json["predictions"]]
            assert got == pytest.approx([good, rest, good], abs=1e-6)
            versions.append(version)
        assert versions == sorted(versions)
        seen.update(versions)
    assert len(seen) > PUSHES / 2
    assert last.headers["x-model-version"] == str(PUSHES + 1)


def test_an_answer_names_the_version_that_computed_it_whatever_was_loaded_meanwhile(
    folder, monkeypatch
):
    call = Batcher.call

    async def call_and_reload(batcher, model, signature, texts):
        outputs = await call(batcher, model, signature, texts)
        server.versions._switch(LoadedModel(str(folder / "2")))
        return outputs

    push(folder, 2, probability(2))
    with running(folder, poll_seconds=600) as server:
        old, new = (LoadedModel(str(folder / name)) for name in "12")
        monkeypatch.setattr(Batcher, "call", call_and_reload)
        for ask in (
            lambda: server.predict("good"),
            lambda: server.post("/explain", {"text": "good"}),
        ):
            server.versions._switch(old)
            answer = ask()
            assert server.versions.current.version == new.version
            assert answer.headers["x-model-version"] == "1"
            found = answer.json.get("predictions", [answer.json])
            assert found[0]["probability"] == pytest.approx(probability(1), abs=1e-6)


@pytest.mark.slow
def test_a_broken_version_is_rejected_and_the_previous_one_still_answers(folder, caplog):
    with running(folder, poll_seconds=0.05) as server:
        push_broken(folder, 2)
        push(folder, 3, names=("serving_default",))
        wait(lambda: states(server) == {1: "AVAILABLE", 2: "END", 3: "END"})
        assert server.predict("good").headers["x-model-version"] == "1"
        [three, two] = server.get(MODEL).json["model_version_status"][:2]
        assert two["status"]["error_code"] == "INVALID_ARGUMENT"
        assert "no signature predict_text" in three["status"]["error_message"]
        # The broken version is loaded only once, and a newer version still replaces the old one.
        time.sleep(0.3)
        assert caplog.text.count(f"{folder}/2 is rejected: it cannot be served") == 1
        push(folder, 4)
        wait(lambda: states(server).get(4) == "AVAILABLE")
        assert states(server)[1] == "END"


@pytest.mark.slow
def test_a_version_that_is_copied_file_by_file_answers_when_it_is_complete(folder, tmp_path):
    """rsync and scp copy the graph before the variables."""
    push(tmp_path / "elsewhere", 2)
    variables, late = folder / "2" / "variables", tmp_path / "variables"
    with running(folder, poll_seconds=0.05) as server:
        (tmp_path / "elsewhere" / "2" / "variables").rename(late)
        shutil.copytree(tmp_path / "elsewhere" / "2", folder / "2")
        wait(lambda: states(server) == {1: "AVAILABLE", 2: "END"})
        shutil.copytree(late, variables)
        wait(lambda: states(server) == {1: "END", 2: "AVAILABLE"})


@pytest.mark.slow
def test_a_version_is_loaded_when_its_files_no_longer_change(folder, tmp_path):
    """The names of the classes may arrive last, and without them the answers have other names."""
    labels = Labels(("ham", "spam"))
    push(tmp_path / "elsewhere", 2)
    with running(folder, poll_seconds=0.3) as server:
        (tmp_path / "elsewhere" / "2").rename(folder / "2")
        for size in range(1, 15):
            (folder / "2" / "still copied").write_bytes(bytes(size))
            time.sleep(0.1)
            assert states(server) == {1: "AVAILABLE"}
        write_labels(str(folder / "2" / "assets"), labels)
        wait(lambda: states(server) == {1: "END", 2: "AVAILABLE"})
        assert server.get(f"{MODEL}/metadata").json["metadata"]["labels"]["names"] == [
            "ham",
            "spam",
        ]


@pytest.mark.slow
def test_a_version_with_a_file_that_was_not_pushed_is_rejected(folder, tmp_path):
    """The classes in another order, such as those of another model, would not be noticed."""
    push_classes(tmp_path / "elsewhere", 2)
    copy_model(str(tmp_path / "elsewhere" / "2"), str(tmp_path / "pushed"))
    file = tmp_path / "pushed" / "assets" / "labels.json"
    content = file.read_text()
    write_labels(str(file.parent), Labels(TOPICS.names[::-1]))
    with running(folder, poll_seconds=0.05) as server:
        (tmp_path / "pushed").rename(folder / "2")
        wait(lambda: states(server) == {1: "AVAILABLE", 2: "END"})
        problem = server.get(f"{MODEL}/versions/2").json["model_version_status"][0]["status"]
        assert "assets/labels.json is not the file that was pushed" in problem["error_message"]
        (folder / "2" / "assets" / "labels.json").write_text(content)
        wait(lambda: states(server) == {1: "END", 2: "AVAILABLE"})


@pytest.mark.slow
def test_a_complete_version_is_loaded_when_a_temporary_error_has_ended(folder, monkeypatch, caplog):
    """Rights, open files or a bucket: the files of the version do not change."""
    attempts = []

    def load(path):
        attempts.append(path)
        if len(attempts) < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return LoadedModel(path)

    monkeypatch.setattr(served, "_FIRST_PAUSE", 0.2)
    with running(folder, poll_seconds=0.05) as server:
        monkeypatch.setattr(served, "LoadedModel", load)
        push(folder, 2)
        wait(lambda: states(server) == {1: "END", 2: "AVAILABLE"})
    assert len(attempts) == 3
    assert caplog.text.count("Too many open files") == 1


@pytest.mark.slow
def test_a_link_without_a_target_in_a_version_does_not_matter(folder):
    """A file of a version may also be removed while the server lists the files."""
    (folder / "1" / "notes").symlink_to("missing")
    with running(folder, poll_seconds=0.05) as server:
        push(folder, 2)
        (folder / "2" / "notes").symlink_to("missing")
        wait(lambda: states(server) == {1: "END", 2: "AVAILABLE"})


@pytest.mark.slow
def test_a_version_that_is_replaced_under_its_number_answers(folder, tmp_path):
    """Some people copy each model to the folder `1`."""

    def replace(probability):
        push(tmp_path / "elsewhere", 1, probability)
        shutil.rmtree(folder / "1")
        (tmp_path / "elsewhere" / "1").rename(folder / "1")

    def answer():
        return server.predict("good").json["predictions"][0]["probability"]

    with running(folder, poll_seconds=0.05) as server:
        replace(0.7)
        wait(lambda: answer() == 0.7)
        assert states(server) == {1: "AVAILABLE"}
        # What cannot be loaded does not end the answers.
        (folder / "1" / "saved_model.pb").write_bytes(b"\x00damaged")
        wait(lambda: problem(server, 1))
        assert (answer(), states(server)) == (0.7, {1: "AVAILABLE"})
        replace(0.6)
        wait(lambda: answer() == 0.6)
        assert problem(server, 1) == ""


@pytest.mark.slow
def test_after_the_newest_is_deleted_the_previous_one_answers(folder):
    push(folder, 2)
    with running(folder, poll_seconds=0.05) as server:
        assert server.predict("good").headers["x-model-version"] == "2"
        shutil.rmtree(folder / "2")
        wait(lambda: states(server) == {2: "END", 1: "AVAILABLE"})
        push(folder, 2)
        wait(lambda: states(server) == {2: "AVAILABLE", 1: "END"})
        shutil.rmtree(folder)
        time.sleep(0.2)
        assert server.predict("good").status == 200


@pytest.mark.slow
def test_no_error_ends_the_search_for_newer_versions(folder, monkeypatch, caplog):
    def fail(folder):
        raise OSError("unreachable")

    with running(folder, poll_seconds=0.05) as server:
        with monkeypatch.context() as broken:
            broken.setattr(served, "versions", fail)
            wait(lambda: f"{folder} cannot be read: OSError: unreachable" in caplog.text)
        push(folder, 2)
        wait(lambda: states(server) == {1: "END", 2: "AVAILABLE"})


def test_a_bucket_that_cannot_be_listed_is_not_empty(monkeypatch):
    def not_found(path):
        raise tf.errors.NotFoundError(None, None, "Could not find directory")

    def fail(path):
        raise tf.errors.PermissionDeniedError(None, None, "no access")

    # TensorFlow lists a folder that it cannot read as one that is missing.
    monkeypatch.setattr(tf.io.gfile, "listdir", not_found)
    monkeypatch.setattr(tf.io.gfile, "stat", not_found)
    assert list(versions("gs://bucket/serving")) == []
    monkeypatch.setattr(tf.io.gfile, "stat", fail)
    with pytest.raises(OSError, match="gs://bucket/serving cannot be read: no access"):
        list(versions("gs://bucket/serving"))


@pytest.mark.slow
def test_a_server_starts_with_the_newest_version_that_works(folder):
    push_broken(folder, 2)
    metrics = Metrics()
    assert ServedVersions(str(folder), metrics).current.version == 1
    for result in ("rejected", "loaded"):
        assert f'model_loads_total{{result="{result}"}} 1.0' in metrics.render().decode()
    shutil.rmtree(folder / "1")
    with pytest.raises(ServerError, match="can be served; version 2: ") as raised:
        ServedVersions(str(folder), Metrics())
    assert "\n" not in str(raised.value)
    shutil.rmtree(folder / "2")
    with pytest.raises(NoModelError, match="no model has been pushed"):
        ServedVersions(str(folder), Metrics())


@pytest.mark.slow
def test_the_names_belong_to_the_version_that_answered(folder):
    """The classes change while the server runs: to five topics, to others, and back."""
    with running(folder, poll_seconds=0.05) as server:

        def best(version):
            wait(lambda: server.versions.current.version == version)
            answer = server.post(f"{MODEL}:classify", {"examples": [{"text": "good c2"}]})
            assert answer.headers["x-model-version"] == str(version)
            [pairs] = answer.json["results"]
            return max(pairs, key=lambda pair: pair[1])[0]

        assert best(1) == "positive"
        push_classes(folder, 2, TOPICS)
        assert best(2) == TOPICS.names[2]
        others = Labels(("1", "2", "3"), is_ordered=True)
        push_classes(folder, 3, others)
        assert best(3) == "3"
        metrics = server.get("/metrics").content.decode()
        assert 'predicted_total{class="3"} 1.0' in metrics
        assert "positive" not in metrics and "billing" not in metrics
        shutil.rmtree(folder / "3")
        assert best(2) == TOPICS.names[2]
        metadata = server.get(f"{MODEL}/metadata").json
        assert metadata["metadata"]["labels"]["names"] == list(TOPICS.names)


def test_a_model_with_another_number_of_classes_than_names_is_broken(tmp_path):
    push_classes(tmp_path, 1, TOPICS)
    write_labels(str(tmp_path / "1" / "assets"), Labels(("a", "b", "c")))
    with pytest.raises(ValueError, match="not return `probabilities` of 3 classes, the number of"):
        LoadedModel(str(tmp_path / "1"))
    (tmp_path / "1" / "assets" / "labels.json").unlink()  # the classes are then negative, positive
    with pytest.raises(ValueError, match="does not return `probability` of 2 classes"):
        LoadedModel(str(tmp_path / "1"))


def test_a_model_with_an_impossible_probability_is_broken(tmp_path):
    push(tmp_path / "serving", 1, float("nan"))
    with pytest.raises(ValueError, match="returns the probability nan"):
        LoadedModel(str(tmp_path / "serving" / "1"))

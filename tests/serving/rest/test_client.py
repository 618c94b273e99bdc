"""Which servers `predict` uses."""

import socket

import pytest

from serving.predictor import Prediction
from serving.rest.client import RemotePredictor, find_server
from serving.rest.settings import Server


class Own:
    """The predictor of this process."""

    def predict(self, texts):
        return [Prediction(0.25, 0) for _ in texts]


def found(port, model):
    return find_server(Server(port=port), str(model), Own)


def test_the_server_of_the_same_version_answers(server, serving):
    predictor = found(server.port, serving / "3")
    assert isinstance(predictor, RemotePredictor)
    [good, bad] = predictor.predict([b"good", "b\u00e4d".encode()])
    assert (good.label, bad.label) == (1, 0)
    assert good.probability == pytest.approx(0.9)


@pytest.mark.parametrize("other", ["serving/4", "elsewhere/3"])
def test_another_version_or_folder_is_not_used(server, serving, other):
    assert isinstance(found(server.port, serving.parent / other), Own)


def test_a_server_that_refuses_is_replaced(server, serving):
    predictor = found(server.port, serving / "3")
    assert predictor.predict([b"good"] * 60) == [Prediction(0.25, 0)] * 60


def test_no_server_is_no_problem(serving):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # This server accepts connections and never answers.
        assert isinstance(found(port, serving / "3"), Own)
    assert isinstance(found(port, serving / "3"), Own)

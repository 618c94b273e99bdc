"""The model in MLflow: what people of pandas pass, and the index of the answer."""

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.slow

TEXTS = ["good phone", "broke after a day", "good value", "no use"]
LABELS = [1, 0, 1, 0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of the model as `runs --send` registers it."""
    import mlflow

    from components.run_report.mlflow_format import save
    from tests.serving.models import push

    folder = tmp_path_factory.mktemp("registered")
    push(folder / "saved_model")
    with pytest.MonkeyPatch.context() as patch:
        # MLflow looks for its tracking store in the working directory.
        patch.chdir(folder)
        save(str(folder / "saved_model"), str(folder / "mlflow"))
        loaded = mlflow.pyfunc.load_model(str(folder / "mlflow"))
    return folder / "saved_model", loaded


@pytest.fixture(params=["by MLflow", "alone"])
def model(request, saved):
    from serving.mlflow_model import _load_pyfunc

    folder, loaded = saved
    return loaded if request.param == "by MLflow" else _load_pyfunc(str(folder))


@pytest.mark.parametrize(
    "index",
    [
        [2, 0, 3, 1],
        list("abcd"),
        [7, 7, 7, 7],
        pd.MultiIndex.from_product([["x", "y"], [1, 2]], names=["shop", "number"]),
        pd.date_range("2026-01-01", periods=4, name="day"),
        [None, np.nan, 1, "a"],
    ],
    ids=["shuffled", "names", "duplicates", "MultiIndex", "dates", "missing"],
)
def test_the_answer_has_the_index_of_the_input(model, index):
    data = pd.DataFrame({"id": range(4), "text": TEXTS}, index=index)
    answers = model.predict(data)
    pd.testing.assert_index_equal(answers.index, data.index)
    assert answers["label"].tolist() == LABELS


def test_answers_are_assigned_to_their_reviews_after_a_sort_and_a_filter(model):
    data = pd.DataFrame({"text": TEXTS}).sort_values("text")
    data = data[data["text"] != "good value"]
    data["label"] = model.predict(data)["label"]
    assert data["label"].tolist() == [int("good" in text) for text in data["text"]]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(TEXTS, dtype="string"),
        np.array(TEXTS),
    ],
    ids=["string", "array"],
)
def test_every_kind_of_column_is_answered(model, column):
    assert model.predict(pd.DataFrame({"text": column}))["label"].tolist() == LABELS


@pytest.mark.parametrize("rows", [0, 1, 512, 513, 1200])
def test_any_number_of_rows_has_as_many_answers_of_the_same_types(model, rows):
    texts = [TEXTS[row % 4] for row in range(rows)]
    answers = model.predict(pd.DataFrame({"text": pd.Series(texts, dtype=object)}))
    assert answers.dtypes.to_dict() == {"probability": np.float32, "label": np.int64}
    assert answers["label"].tolist() == [LABELS[row % 4] for row in range(rows)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("good", [1]),
        (TEXTS, LABELS),
        (tuple(TEXTS), LABELS),
        ([], []),
        (np.array(TEXTS), LABELS),
        (np.array("good"), [1]),
        (np.array(TEXTS, object).reshape(-1, 1), LABELS),
        (pd.Series(TEXTS, [4, 3, 2, 1], name="review"), LABELS),
        # MLflow's signature refuses categories.
        (pd.DataFrame({"text": pd.Categorical(TEXTS)}), LABELS),
        ({"text": TEXTS}, LABELS),
        ({"text": "good"}, [1]),
        ([{"text": text} for text in TEXTS], LABELS),
        (pd.DataFrame(columns=["text"]), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_texts_without_a_frame_are_answered(saved, data, expected):
    from serving.mlflow_model import _load_pyfunc

    answers = _load_pyfunc(str(saved[0])).predict(data)
    assert answers["label"].tolist() == expected
    if isinstance(data, pd.Series):
        assert answers.index.tolist() == data.index.tolist()


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """A registered model of five classes, as MLflow loads it."""
    import mlflow

    from components.run_report.mlflow_format import save
    from tests.serving.models import push_classes

    folder = tmp_path_factory.mktemp("topics")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        save(str(push_classes(folder / "saved_model")), str(folder / "mlflow"))
        return mlflow.pyfunc.load_model(str(folder / "mlflow"))


def test_a_model_of_several_classes_names_them(topics):
    from tests.serving.models import TOPICS

    answers = topics.predict(pd.DataFrame({"text": ["c3", "a c1"]}, index=["x", "y"]))
    assert answers.index.tolist() == ["x", "y"]
    assert answers["class"].tolist() == [TOPICS.names[3], TOPICS.names[1]]
    assert answers["label"].tolist() == [3, 1]
    assert answers["probability"].dtype == np.float32
    np.testing.assert_allclose(answers["probability"], 10 / 14, rtol=1e-6)
    [first, _] = answers["probabilities"]
    np.testing.assert_allclose(first, [1 / 14, 1 / 14, 1 / 14, 10 / 14, 1 / 14], rtol=1e-6)


def test_the_signature_and_the_example_fit_several_classes(topics):
    outputs = topics.metadata.signature.outputs
    assert outputs.input_names() == ["probability", "label", "class", "probabilities"]
    example = topics.input_example
    assert "phone" not in " ".join(example["text"])  # the texts are not reviews
    answers = topics.predict(example)
    assert list(answers.columns) == outputs.input_names()
    assert topics.predict(example.iloc[:0]).empty


def test_the_answers_of_several_classes_fit_the_inferred_signature(topics):
    """MLflow checks the columns of a request for a deployed model with the same types."""
    from mlflow.models import infer_signature

    answers = topics.predict(topics.input_example)
    inferred = infer_signature(topics.input_example, answers).outputs.to_dict()
    declared = topics.metadata.signature.outputs.to_dict()
    assert [{**each, "required": True} for each in inferred] == declared


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, r"is missing \(None\)"),
        (np.nan, r"is missing \(nan\)"),
        (pd.NA, r"is missing \(<NA>\)"),
        (pd.NaT, r"is missing \(NaT\)"),
        (5, "is of the type int"),
        (b"good", "is of the type bytes"),
        (["good", "bad"], "is of the type list"),
        ("good \ud83d", "contains a surrogate"),
    ],
    ids=repr,
)
def test_a_row_without_a_text_is_named(saved, value, problem):
    from serving.mlflow_model import _load_pyfunc

    column = pd.Series([*TEXTS, value], list("abcde"), dtype=object)
    with pytest.raises(ValueError, match=rf"^row 4 \(index 'e'\): text {problem}"):
        _load_pyfunc(str(saved[0])).predict(pd.DataFrame({"text": column}))


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], "good phone"], ids=["four", "one", "a text"])
def test_a_mapping_is_answered(model, texts):
    expected = [1] if isinstance(texts, str) else LABELS[: len(texts)]
    assert model.predict({"text": texts})["label"].tolist() == expected


def test_a_missing_text_is_named_through_mlflow_too(saved):
    with pytest.raises(Exception, match=r"row 1 .*: text is missing"):
        saved[1].predict(pd.DataFrame({"text": ["good", None]}))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (pd.DataFrame({"review": ["good"]}), "no column 'text' in the input; .* are: review"),
        (pd.DataFrame(), "no column 'text' in the input; the columns are: none"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "2 columns 'text'"),
        (pd.DataFrame([["a"]], columns=pd.MultiIndex.from_tuples([("text", "x")])), "no column"),
    ],
    ids=["other", "none", "twice", "MultiIndex"],
)
def test_a_frame_without_the_column_is_refused(saved, data, problem):
    from serving.mlflow_model import _load_pyfunc

    with pytest.raises(ValueError, match=problem):
        _load_pyfunc(str(saved[0])).predict(data)

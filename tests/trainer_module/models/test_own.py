"""The model of a project: the one that `init` writes works, and a broken one names its line."""

import inspect
from pathlib import Path

import pytest

import cli
from core.code_file import CodeError, CodeFile
from core.training_summary import read_summary
from preprocessing.labels import SENTIMENT, Labels
from preprocessing.settings import Transform
from tests.trainer_module.conftest import make_job, predict, run_task
from trainer_module import models, training
from trainer_module.loop.finite import NotFiniteError
from trainer_module.settings import MODELS, Training

pytestmark = pytest.mark.slow

TEXT = (Path(cli.__file__).parent / "project" / "models" / "my_model.py").read_text()
TRANSFORM = Transform(vocabulary_size=30, max_tokens=8)
SETTINGS = Training(model="my_model", hyperparameters={"embedding_width": 8})
TOPICS = Labels(("bad", "fair", "good"))


def changed(*changes):
    """Return the file of `init` with parts of its text replaced."""
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    return CodeFile(kind="model", name="my_model", path="models/my_model.py", text=text)


def line(file, part):
    return 1 + file.text[: file.text.index(part)].count("\n")


@pytest.mark.parametrize("labels", [SENTIMENT, TOPICS], ids=["two classes", "three"])
def test_the_model_of_a_new_project_can_be_trained(labels):
    models.try_out(SETTINGS, labels, TRANSFORM, changed())


RETURNED = "return tf_keras.Model({features.TOKENS: tokens}, logits(x, tokens, labels))"
BUILD = "def build("
EXPORTED = """optimizer = adam
def exported(model, _):
    from trainer_module.models import Exported
    return Exported("""
WORDS = "words = tf.maximum(tf.reduce_sum(is_word, axis=1), 1)"


@pytest.mark.parametrize(
    ("before", "after", "at", "message"),
    [
        (RETURNED, "return None", BUILD, "build returns a builtins.NoneType, not a tf_keras.Model"),
        (RETURNED, RETURNED.replace("logits(x, tokens, labels)", "x"), BUILD,
         "build returns a model with the output float32 [batch, 8]; for 2 classes it must be"),
        (RETURNED, RETURNED.replace("{features.TOKENS: tokens}", "tokens"), BUILD,
         "build returns a model with the inputs without names; tf_keras.Model requires a mapping"),
        (RETURNED, RETURNED.replace("return", "model =")
         + "\n    model.add_loss(tf.reduce_mean(x))\n    return model", BUILD,
         "build returns a model with an add_loss of its own, which the training would ignore"),
        (RETURNED, RETURNED.replace("return tf_keras.Model(", """class Smoothed(tf_keras.Model):
        def train_step(self, data):
            return super().train_step((data[0], 0.9 * data[1] + 0.05))
    return Smoothed("""), BUILD,
         "build returns a Smoothed with a `train_step` of its own, which the training would ignor"),
        ("tokens != features.PADDING_TOKEN", "tokens >= 0", BUILD,
         "build returns a model whose logits depend on the padding of a review"),
        (" / words\n", " / words + tf.zeros([3, 3])\n", "return tf.reduce_sum(vectors * is_word",
         "ValueError: Dimensions must be equal, but are 8 and 3"),
        (WORDS, f"{WORDS}\n        if tf.reduce_max(words) > 9:\n            words = words + 1",
         "if tf.reduce_max", "OperatorNotAllowedInGraphError: "),
        ("hyperparameters.embedding_width)(", "hyperparameters.width)(", "vectors = embedding",
         "AttributeError: 'Hyperparameters' object has no attribute 'width'"),
        ("FEATURES = (features.TOKENS,)", 'FEATURES = ("words",)', "FEATURES",
         "FEATURES contains 'words'; the features are ngrams and tokens"),
        (RETURNED,
         "weight = tf.Variable(tf.ones([8]), name='mine')\n    x = x * weight\n    " + RETURNED,
         BUILD, "build returns a model that computes with the variable mine:0, which no layer has"),
        ("RATE = 1e-2", "RATE = -1e-2", "LEARNING", "LEARNING_RATE is -0.01, not a number above 0"),
        ("RATE = 1e-2", 'RATE = "fast"', "LEARNING", "LEARNING_RATE is 'fast', not a number abov"),
        ('(1e-3, 3e-2, "log")', "(1e-3, 3e-2)", "SEARCH_SPACE",
         "SEARCH_SPACE contains 'learning_rate': (0.001, 0.03), which is neither a list nor (low"),
        ('"dropout": (0', '"drop": (0', "SEARCH_SPACE",
         "SEARCH_SPACE contains 'drop', which is no hyperparameter of the model; did you mean dro"),
        ("[32, 64, 128]", '(32, 128, "linear")', "SEARCH_SPACE",
         "SEARCH_SPACE contains 'embedding_width': (32, 128, 'linear'), but embedding_width does "
         "not allow 32.0: must be an integer; a range has float values, set a list"),
        ("optimizer = adam", "optimizer = 3", "optimizer = 3", "optimizer is not a function"),
        ("optimizer = adam", "def optimizer(rate):\n    return rate", "def optimizer",
         "optimizer returns a builtins.float, not a tf_keras optimizer"),
        ("optimizer = adam",
         "def optimizer(rate):\n    return tf_keras.optimizers.SGD(rate, use_ema=True)",
         "def optimizer", "optimizer returns an optimizer with use_ema, whose averages are never"),
        ("optimizer = adam", "optimizer = adam\ndef loss(label, _):\n    return label", "def loss",
         "loss returns the shape (2, 1) for 2 Examples, not (2,)"),
        ("optimizer = adam", "def optimizer(_):\n    return adam(0.01)", "def optimizer",
         "optimizer returns an optimizer with the learning rate 0.01 instead of the schedule that"),
        ("optimizer = adam", "def optimizer(_):\n    return tf_keras.optimizers.SGD()",
         "def optimizer", "optimizer returns an optimizer with the learning rate 0.01 instead of"),
        ("optimizer = adam", "def optimizer(rate):\n    return adam(rate / 2)", "return adam",
         "TypeError: unsupported operand type(s) for /: 'ExponentialDecay' and 'int'"),
        ("optimizer = adam", "optimizer = adam\ndef loss(label, logits):\n"
         "    return tf.cast(label - logits, tf.float64)[:, 0]", "def loss",
         "loss returns float64, not float32"),
        ("optimizer = adam", "optimizer = adam\ndef loss(label, logits):\n"
         "    return tf.math.log(label - 1.0)[:, 0]", "def loss",
         "loss returns nan, -inf for 2 Examples of a new model; it must be finite"),
        ("optimizer = adam", "optimizer = adam\ndef adapt(model, counts):\n"
         "    model.get_layer('bag').scale.assign(counts)", "model.get_layer('bag')",
         "ValueError: No such layer: bag"),
        ("optimizer = adam", "optimizer = adam\ndef exported(model, _):\n    return model",
         "def exported", "exported returns a Functional, not a trainer_module.models.Exported"),
        ("optimizer = adam",
         EXPORTED + "tf_keras.Model(model.input, model.get_layer('dropout').output), model)",
         "def exported",
         "exported returns a model with the output float32 [batch, 8]; for 2 classes it must be"),
        ("optimizer = adam", EXPORTED + "tf_keras.Model(model.inputs, model.output), model)",
         "def exported", "exported returns a served model with the inputs without names; they"),
        (RETURNED, """class Own(tf_keras.Model):
        def call(self, inputs):
            return logits(x, inputs[features.TOKENS], labels)
    return Own()""", BUILD,
         "build returns a model of the class Own without inputs; return tf_keras.Model(INPUTS, LO"),
        (RETURNED, RETURNED.replace("logits(x, tokens, labels))", "[x, x])"), BUILD,
         "build returns a model whose output is not one tensor"),
        ("optimizer = adam", EXPORTED + "tf_keras.Sequential(), model)",
         "def exported", "exported returns a model of the class Sequential without inputs; return"),
        ("optimizer = adam", EXPORTED + "model, model.variables)",
         "def exported", "exported returns a builtins.list as `base`, not a tf_keras.Model"),
        ("class Hyperparameters(Section)", "class Hyperparameters", "class Hyperparameters",
         "Hyperparameters is not a class that extends Section"),
    ],
)  # fmt: skip
def test_a_broken_model_is_one_line_before_the_run(before, after, at, message):
    file = changed((before, after))
    with pytest.raises(CodeError) as error:
        models.try_out(SETTINGS, SENTIMENT, TRANSFORM, file)
    text = str(error.value)
    assert text.startswith(f"models/my_model.py, line {line(file, at)}: {message}"), text
    assert "\n" not in text


def test_an_optimizer_that_the_strategy_does_not_support_is_named_before_the_run():
    file = changed(("optimizer = adam", "optimizer = tf_keras.optimizers.Adam"))
    models.try_out(SETTINGS, SENTIMENT, TRANSFORM, file)
    central = SETTINGS.model_copy(update={"strategy": "central_storage"})
    with pytest.raises(CodeError) as error:
        models.try_out(central, SENTIMENT, TRANSFORM, file)
    at = line(file, "optimizer = ")
    assert str(error.value).startswith(f"models/my_model.py, line {at}: optimizer returns a "), (
        error
    )
    assert "under central_storage; return one of tf_keras.optimizers.legacy" in str(error.value)
    models.try_out(central, SENTIMENT, TRANSFORM, changed())


@pytest.mark.parametrize("name", ["legacy.Adam", "Adam", "legacy.RMSprop"])
def test_an_optimizer_whose_updates_workers_overwrite_is_named_before_the_run(name):
    file = changed(("optimizer = adam", f"optimizer = tf_keras.optimizers.{name}"))
    alone = SETTINGS.model_copy(update={"strategy": "parameter_server"})
    models.try_out(alone, SENTIMENT, TRANSFORM, file)
    several = alone.model_copy(update={"workers": 2})
    with pytest.raises(CodeError) as error:
        models.try_out(several, SENTIMENT, TRANSFORM, file)
    at = line(file, "optimizer = ")
    assert str(error.value).startswith(f"models/my_model.py, line {at}: optimizer returns a ")
    assert "whose updates 2 workers of parameter_server would overwrite; return " in str(
        error.value
    )
    sgd = changed(("optimizer = adam", "optimizer = tf_keras.optimizers.legacy.SGD"))
    for usable in (changed(), sgd):
        models.try_out(several, SENTIMENT, TRANSFORM, usable)


def test_a_constraint_that_overwrites_updates_of_other_workers_is_named_before_the_run():
    limited = "Dense(4, kernel_constraint='non_neg', name='limited')(x)"
    dropout = "x = tf_keras.layers.Dropout("
    file = changed((dropout, f"x = tf_keras.layers.{limited}\n    {dropout}"))
    alone = SETTINGS.model_copy(update={"strategy": "parameter_server"})
    models.try_out(alone, SENTIMENT, TRANSFORM, file)
    with pytest.raises(CodeError, match=r"constraint on limited/kernel:0, by which each of 2 work"):
        models.try_out(alone.model_copy(update={"workers": 2}), SENTIMENT, TRANSFORM, file)


def test_a_constraint_that_the_optimizer_does_not_support_is_named_before_the_run():
    table = "tf_keras.layers.Embedding(99, 8, embeddings_constraint='non_neg', name='table')"
    embedding = "embedding(transform, hyperparameters.embedding_width)"
    file = changed((f"vectors = {embedding}", f"vectors = {table}"))
    with pytest.raises(CodeError, match=r"constraint on table/embeddings:0, of which a step has "):
        models.try_out(SETTINGS, SENTIMENT, TRANSFORM, file)
    new = ("optimizer = adam", "optimizer = tf_keras.optimizers.Adam")
    models.try_out(SETTINGS, SENTIMENT, TRANSFORM, changed((embedding, table), new))


FIRST_REVIEW = (" / words\n", " / words + 0 * tf.gather(vectors, 0)[0]\n")
PADDED = (
    ("DropoutRate, adam", "DropoutRate, Padding, adam"),
    ("embedding_width)(tokens)", "embedding_width)(Padding()(tokens))"),
    ("(vectors, tokens)\n    x =", "(vectors, Padding()(tokens))\n    x ="),
)


def test_a_model_that_fails_for_a_batch_without_reviews_is_named_before_the_run():
    file = changed(FIRST_REVIEW)
    with pytest.raises(CodeError) as error:
        models.try_out(SETTINGS, SENTIMENT, TRANSFORM, file)
    text = str(error.value)
    at = line(file, "return tf.reduce_sum(vectors * is_word")
    assert text.startswith(
        f"models/my_model.py, line {at}: the model fails for a batch of 0 reviews, which a "
    ), text
    assert "layers.Padding" in text
    models.try_out(SETTINGS, SENTIMENT, TRANSFORM, changed(FIRST_REVIEW, *PADDED))


@pytest.mark.parametrize("name", MODELS)
def test_the_models_of_the_package_pass_the_checks_of_own_models(name):
    module = models.load(name)
    file = CodeFile(kind="model", name=name, path=f"{name}.py", text=inspect.getsource(module))
    models.try_out(Training(model=name), SENTIMENT, TRANSFORM, file)


def test_a_hyperparameter_that_the_file_does_not_have_is_named():
    training = Training(model="my_model", hyperparameters={"layers": 2})
    with pytest.raises(ValueError, match=r"training\.hyperparameters\.layers: unknown key, known"):
        models.hyperparameters(training, changed())


def test_averages_of_a_batch_normalization_are_trained_by_several_processes(prepared, tmp_path):
    normalised = "x = tf_keras.layers.BatchNormalization()(x)\n    x = tf_keras.layers.Dropout("
    file = changed(*PADDED, ("x = tf_keras.layers.Dropout(", normalised))
    settings = SETTINGS.model_dump(include={"model", "hyperparameters"})
    cluster = {"strategy": "multi_worker_mirrored", "workers": 2}
    job = make_job(prepared, tmp_path, epochs=1, **cluster, **settings)
    done = run_task(job.model_copy(update={"model_file": file}), tmp_path)
    assert done.code == 0, done.log
    assert predict(tmp_path, ["good", "bad"])["probability"].shape == (2,)


def test_an_exported_model_that_is_not_finite_is_not_written(prepared, tmp_path):
    infinite = """optimizer = adam
def exported(model, _):
    from trainer_module.models import Exported
    served = tf_keras.models.clone_model(model)
    served.set_weights([value + float("inf") for value in model.get_weights()])
    return Exported(served, model)"""
    settings = SETTINGS.model_dump(include={"model", "hyperparameters"})
    job = make_job(prepared, tmp_path, epochs=1, **settings)
    job = job.model_copy(update={"model_file": changed(("optimizer = adam", infinite))})
    with pytest.raises(NotFiniteError, match=r"of the exported model are not finite, .* my_model$"):
        training.train(job, None)
    assert not (tmp_path / "model").exists()


def test_defaults_that_json_does_not_have_are_recorded_and_end_no_warm_start(
    prepared, tmp_path, log
):
    more = """
    largest_norm: float = float("inf")
    widths: tuple[int, ...] = (2, 3)
    kept: frozenset[str] = frozenset({"a"})

    embedding_width: """
    file = changed(("\n    embedding_width: ", more))
    settings = SETTINGS.model_dump(include={"model", "hyperparameters"})
    base = str(tmp_path / "first" / "model")
    for name, before in [("first", None), ("second", base)]:
        job = make_job(prepared, tmp_path / name, epochs=1, base_model=before, **settings)
        training.train(job.model_copy(update={"model_file": file}), None)
    found = read_summary(job.model_run_dir).hyperparameters
    assert (found["largest_norm"], found["widths"]) == ("Infinity", [2, 3])
    assert found["kept"] == ["a"]
    assert f"Warm start: weights of {base}" in log.text


def test_a_training_and_its_warm_start_read_the_code_from_the_job(prepared, tmp_path, log):
    def make(name, file, base=None):
        settings = SETTINGS.model_dump(include={"model", "hyperparameters"})
        job = make_job(prepared, tmp_path / name, epochs=1, base_model=base, **settings)
        return job.model_copy(update={"model_file": file})

    # In a process of its own, as the processes of a cluster.
    done = run_task(make("first", changed()), tmp_path / "first")
    assert done.code == 0, done.log
    assert predict(tmp_path / "first", ["good", "bad"])["probability"].shape == (2,)
    folder = str(tmp_path / "first" / "model")
    second = make("second", changed(("optimizer = adam", "optimizer = adam  # fast")), folder)
    training.train(second, None)
    assert f"Warm start: weights of {folder}" in log.text

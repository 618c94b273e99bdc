"""ServingCheck: serves a candidate as in production, and blocks the push if it fails.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import ge
from typing import Any

import numpy as np
from absl import logging
from tfx.components.evaluator import constants
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import Artifact, artifact_utils
from tfx.types.standard_artifacts import Examples, InfraBlessing, Model, ModelEvaluation
from tfx.utils import path_utils

from components.evaluator.files import stored_predictions
from components.evaluator.thresholds import check_names, rounded
from components.examples import SAMPLE_SIZE, example_text
from components.properties import (
    BLESSED_PROPERTY,
    CAUSE_PROPERTY,
    NOT_CHECKED_PROPERTY,
)
from components.saved_models import trained_model
from components.serving_check.candidate import (
    BODY_BYTES,
    MAX_BYTES,
    Answers,
    try_candidate,
)
from components.serving_check.golden import Golden, Sentence
from components.serving_check.known_words import why_not_applied
from components.serving_check.results import (
    GOLDEN,
    CheckResults,
    GoldenMistake,
    Result,
    write_check,
)
from components.serving_check.thresholds import Thresholds
from examples.tfrecords import read_sample
from preprocessing.labels import SENTIMENT, Labels, read_labels
from preprocessing.reading.listing import listed
from preprocessing.signatures import PREDICT_TEXT, SERVING_DEFAULT

_TOLERANCE = 1e-3
"""Maximum difference of two probabilities that is due to rounding to half precision."""
_EVALUATION_TOLERANCE = 1e-2
"""Maximum difference of a probability between the evaluation and the check. The check runs on the
CPU. The evaluation may run on a GPU, which rounds the factors of matrix products to ten bits
(TF32)."""
_TRAIN_FILES = 8
"""Maximum number of files from which the train reviews are sampled. A file has about 16 MiB of
text."""
_MEASUREMENTS = {
    "load_seconds": ("s", "", ""),
    "memory_mb": ("MiB", "max_memory_mb", "the server used"),
    "p99_ms": ("ms", "max_p99_ms", "the p99 latency of single requests is"),
    "reviews_per_second": ("reviews/s", "", ""),
}
"""Name of a measurement -> unit, key of the threshold, and the beginning of the message."""


@component
def ServingCheck(
    model: InputArtifact[Model],
    examples: InputArtifact[Examples],
    evaluation: InputArtifact[ModelEvaluation],
    blessing: OutputArtifact[InfraBlessing],
    settings: Parameter[str],
    golden: Parameter[str],
) -> None:
    """Serve a candidate as in production, check its answers, and bless it if all checks pass.

    The blessing is the input `infra_blessing` of the Pusher. A candidate that fails a check is not
    pushed; the component itself does not fail. TFX's InfraValidator requires Docker or a Kubernetes
    cluster, and checks only that requests succeed.

    Args:
      model: the candidate.
      examples: raw Examples. The Evaluator evaluated the split `test`. The split `train` decides
        whether the golden sentences of the package apply.
      evaluation: the Evaluator's evaluation of the candidate.
      blessing: the output: whether the candidate passed, and the file with all results.
      settings: the thresholds, from `Thresholds.parameters`.
      golden: the golden sentences, from `Thresholds.parameters`.

    Raises:
      InputError: the Examples of a split or the model were deleted or are damaged, or a
        golden sentence has a class that does not exist.
      OSError, tensorflow.errors.OpError: a file cannot be read, or the model cannot be copied.
    """
    labels = read_labels(examples.uri)
    sentences, not_applied = _applied_golden(Golden.from_json(golden), examples, labels)
    sample, not_sent = _test_sample(examples, labels)
    not_checked = "; ".join(filter(None, [not_applied, not_sent]))
    if not_checked:
        logging.warning("Serving check: %s", not_checked)
    candidate = path_utils.serving_model_path(model.uri)
    answers = try_candidate(candidate, sample, [sentence.text for sentence in sentences])
    if answers.failure:
        trained_model(model.uri)  # A damaged file is no reason to refuse the model.
    predictions = stored_predictions(evaluation.uri, sample)
    thresholds = Thresholds.model_validate_json(settings)
    found = check_answers(answers, thresholds, predictions, sentences, labels)
    found = dataclasses.replace(found, not_checked=not_checked)
    for result in found.results:
        logging.info("Serving check: %s", result)
    write_check(blessing.uri, found)
    # The property that an Evaluator's blessing has.
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY, model.id)
    blessing.set_int_custom_property(BLESSED_PROPERTY, int(found.passed))
    blessing.set_string_custom_property(CAUSE_PROPERTY, found.cause)
    blessing.set_string_custom_property(NOT_CHECKED_PROPERTY, not_checked)


def _applied_golden(
    golden: Golden, examples: Artifact, labels: Labels
) -> tuple[Sequence[Sentence], str]:
    """Return the golden sentences that apply, and why others do not, as a clause.

    Args:
      golden: the golden sentences.
      examples: raw Examples, whose split `train` decides whether those of the package apply.
      labels: the classes.

    Raises:
      InputError: the Examples were deleted or are damaged, or a sentence has a class that does not
        exist.
    """
    if not golden.is_packaged:
        named = {sentence.label for sentence in golden.sentences}
        check_names("serving_check.golden", sorted(named), labels.names)
        missing = [name for name in labels.names if name not in named]
        if not missing:
            return golden.sentences, ""
        return golden.sentences, (
            f"serving_check.golden has no sentence of {len(missing):,} of {labels.number:,} "
            f"classes, which were not checked: {listed(missing)}"
        )
    if labels.names != SENTIMENT.names:
        return (), (
            "no golden sentences were checked, because those of the package are for negative and "
            "positive reviews; set serving_check.golden to sentences of your data"
        )
    train = artifact_utils.get_split_uri([examples], "train")
    reviews = read_sample(train, SAMPLE_SIZE, _TRAIN_FILES)
    texts = [sentence.text for sentence in golden.sentences]
    not_applied = why_not_applied(texts, map(example_text, reviews))
    return () if not_applied else golden.sentences, not_applied


def _test_sample(examples: Artifact, labels: Labels) -> tuple[list[bytes], str]:
    """Return a sample of the test split for the server, and why it lacks some, as a clause.

    Args:
      examples: raw Examples.
      labels: the classes.

    Raises:
      InputError: the Examples were deleted or are damaged.
    """
    tested = read_sample(artifact_utils.get_split_uri([examples], "test"), SAMPLE_SIZE)
    # If no text fits into a request, the server cannot serve them, and the check fails.
    sample = [each for each in tested if len(each) <= MAX_BYTES] or tested
    if len(sample) == len(tested):
        return sample, ""
    return sample, (
        f"{len(tested) - len(sample):,} of {len(tested):,} test {labels.nouns} were not sent, "
        f"because the server accepts requests of at most {BODY_BYTES:,} bytes"
    )


def check_answers(
    answers: Answers,
    thresholds: Thresholds,
    predictions: Mapping[int, Any],
    golden: Sequence[Sentence],
    labels: Labels,
) -> CheckResults:
    """Compare the answers of a candidate with the thresholds and the evaluation.

    Args:
      answers: the answers of the candidate.
      thresholds: the thresholds.
      predictions: the result of `stored_predictions`.
      golden: the golden sentences that apply.
      labels: the classes.

    Returns:
      The results, without `not_checked`.
    """
    mistakes = [
        GoldenMistake(sentence.text, sentence.label, predicted, probability)
        for sentence, predicted, probability in _answers(golden, answers.golden, labels)
        if predicted != sentence.label
    ]
    results = [_result("process", answers.failure or "finished", cause=answers.failure)]
    results += _measurements(answers, thresholds, labels.nouns)
    if answers.by_example:
        results += _agreement(answers, predictions, labels.noun)
    if answers.golden:
        golden_labels = [sentence.label for sentence in golden]
        results += _golden(golden_labels, mistakes, thresholds.min_golden, labels)
    return CheckResults(results, mistakes)


def _answers(
    golden: Sequence[Sentence], scores: Sequence[Any], labels: Labels
) -> Iterator[tuple[Sentence, str, float]]:
    """Yield each golden sentence with the predicted class and a rounded probability."""
    for sentence, score in zip(golden, scores, strict=False):
        [predicted] = labels.decide([score]).tolist()
        [probability] = labels.shown([score], predicted).tolist()
        yield sentence, labels.names[predicted], round(probability, 4)


def _result(
    name: str, value: float | str, threshold: float | None = None, unit: str = "", cause: str = ""
) -> Result:
    """Return a result whose cause is one line."""
    return Result(name, value, threshold, unit, " ".join(cause.split()))


def _measurements(answers: Answers, thresholds: Thresholds, words: str) -> Iterator[Result]:
    """Yield a result for each measurement; `words` is the word for texts."""
    for name, (unit, key, subject) in _MEASUREMENTS.items():
        if name not in answers.measured:
            continue
        value = answers.measured[name]
        limit = getattr(thresholds, key, None)
        cause = ""
        if limit is not None and value > limit:
            shown = rounded(value, partial(ge, limit), 0 if value >= 100 else 2)
            cause = f"{subject} {shown} {unit}, serving_check.{key} allows {limit:g}"
        shown_name, shown_unit = (each.replace("reviews", words) for each in (name, unit))
        yield _result(shown_name, value, limit, shown_unit, cause)


def _agreement(answers: Answers, predictions: Mapping[int, Any], noun: str) -> Iterator[Result]:
    """Yield a result for each two ways of scoring that must return equal probabilities."""
    by_text = answers.by_text
    ways = {PREDICT_TEXT: by_text, SERVING_DEFAULT: answers.by_example}
    yield _compared("largest_difference", _TOLERANCE, ways, noun)
    single = answers.by_single
    ways = {PREDICT_TEXT: by_text[: len(single)], f"{PREDICT_TEXT} for a single text": single}
    yield _compared("single_difference", _TOLERANCE, ways, noun)
    served, evaluated = [], []
    for number, prediction in predictions.items():
        probabilities = answers.by_example[number]
        if isinstance(prediction, Mapping):
            # The evaluation stores the most probable classes only.
            served.append([probabilities[label] for label in prediction])
            evaluated.append(list(prediction.values()))
        else:
            served.append(probabilities)
            evaluated.append(prediction)
    ways = {SERVING_DEFAULT: served, "the evaluation": evaluated}
    yield _compared("evaluation_difference", _EVALUATION_TOLERANCE, ways, noun)


def _compared(name: str, tolerance: float, ways: Mapping[str, Sequence[Any]], noun: str) -> Result:
    """Return the result of a comparison: the maximum difference of two probabilities of a text.

    Args:
      name: the name of the result.
      tolerance: the maximum difference that passes.
      ways: two ways of scoring -> the probabilities of the same texts.
      noun: the word for a text, see `Labels.noun`.
    """
    (way, one), (other_way, other) = ways.items()
    # A row for each text, with the probability of each class.
    rows = [np.reshape(scores, (len(one), -1)) for scores in (one, other)]
    differences = np.abs(rows[0] - rows[1])
    # The index of a NaN, if there is one.
    worst = np.unravel_index(int(differences.argmax()), differences.shape)
    largest = float(differences[worst])
    cause = (
        f"{way} returned the probability {rows[0][worst]:.4f} for a test {noun}, and {other_way} "
        f"{rows[1][worst]:.4f} for the same {noun}"
    )
    # A comparison with NaN is false, so NaN does not pass.
    return _result(name, largest, tolerance, cause="" if largest <= tolerance else cause)


def _golden(
    golden: Sequence[str],
    mistakes: Sequence[GoldenMistake],
    minimum: float,
    labels: Labels,
) -> Iterator[Result]:
    """Yield a result for each class: whether enough of its golden sentences are right.

    Args:
      golden: the label of each golden sentence.
      mistakes: the golden sentences whose predicted label is wrong.
      minimum: the minimum fraction that passes.
      labels: the classes.
    """
    for label in filter(set(golden).__contains__, labels.names):
        count = golden.count(label)
        right = count - sum(mistake.label == label for mistake in mistakes)
        is_sentiment = labels.names == SENTIMENT.names
        name = f"{label} golden sentences" if is_sentiment else f"golden sentences of class {label}"
        cause = (
            f"{right} of {count} {name} are right, serving_check.min_golden "
            f"requires {minimum:g}; check the model, or set serving_check.golden to sentences of "
            "its data"
        )
        # With a minimum of 0 every model passes, and the report shows no threshold.
        is_passed = right / count >= minimum
        yield _result(
            f"{GOLDEN}{label}", right / count, minimum or None, cause="" if is_passed else cause
        )

"""Evaluator: the metrics of a candidate and its baseline, and the blessing.

TFX's Evaluator passes one Python object for each review through each metric of TFMA, which takes
most of the time of an evaluation. Here the metrics are functions of counts, see `metrics`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import apache_beam as beam
from absl import logging
from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel, standard_artifacts
from tfx.types.component_spec import ExecutionParameter
from tfx.types.standard_component_specs import (
    BASELINE_MODEL_KEY,
    BLESSING_KEY,
    EVALUATION_KEY,
    EXAMPLES_KEY,
    MODEL_KEY,
)
from tfx.types.standard_component_specs import EvaluatorSpec as TfxSpec
from tfx.utils import io_utils, path_utils

from components.baseline import existing_model
from components.beam import LocalBeamExecutor, divide_into_units
from components.evaluator import files, new_span, tfma_files
from components.evaluator.files import BASELINE, CANDIDATE, OtherModel, Results
from components.evaluator.scores import Scores, confused_reviews, merge
from components.evaluator.scoring import SCORED, ScoreFiles
from components.evaluator.thresholds import Evaluation
from components.examples import newest_span, split_files
from components.properties import BASELINE_PROPERTY
from components.saved_models import trained_model
from core.errors import InputError
from core.progress import report
from core.settings import with_parameters
from examples.held_out import held_out, read_origin
from examples.tfrecords import count_examples
from preprocessing.labels import Labels, model_labels, read_labels
from preprocessing.reading.labels import numbers_of, two_scales
from serving.drift import reference


class EvaluatorExecutor(LocalBeamExecutor):
    """The executor that evaluates a candidate and blesses it if it reaches all thresholds.

    `Do` raises an InputError if the Examples or the candidate were deleted or are damaged, the
    baseline is unknown or damaged, or the labels fit both its scale and the one that was detected.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        self._log_startup(input_dict, output_dict, exec_properties)
        settings = with_parameters(
            Evaluation.model_validate_json(exec_properties["settings"]),
            {"min_accuracy": exec_properties["min_accuracy"]},
        )
        try:
            self._evaluate(input_dict, output_dict, settings)
        except Exception:
            # The errors about a damaged candidate do not name it, or name the baseline as unknown.
            [candidate] = input_dict[MODEL_KEY]
            trained_model(candidate.uri)
            raise

    def _evaluate(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        settings: Evaluation,
    ) -> None:
        inputs = existing_model(input_dict, BASELINE_MODEL_KEY)
        [evaluation], [blessing] = output_dict[EVALUATION_KEY], output_dict[BLESSING_KEY]
        [candidate] = inputs[MODEL_KEY]
        [examples] = inputs[EXAMPLES_KEY]
        models = {CANDIDATE: path_utils.serving_model_path(candidate.uri)}
        uri_key = constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY
        blessing.set_string_custom_property(uri_key, candidate.uri)
        id_key = constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY
        blessing.set_int_custom_property(id_key, candidate.id)
        labels = read_labels(examples.uri)
        unscored = Results(labels, settings, {})
        for baseline in inputs.get(BASELINE_MODEL_KEY, []):
            found = _compared(baseline, models[CANDIDATE], labels)
            unscored = unscored._replace(other=found.other, known=found.known)
            if found.other is None:
                models[BASELINE] = found.folder
                blessing.set_string_custom_property(BASELINE_PROPERTY, found.name)
        span = newest_span(examples)
        tested = split_files(inputs[EXAMPLES_KEY], ["test"])
        report(SCORED, 0, sum(count_examples(tested)))
        units = divide_into_units(tested)
        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Files" >> beam.Create(units, reshuffle=True)
                | "ScoreFiles" >> beam.ParDo(ScoreFiles(models, labels, settings))
                | "Merge" >> beam.CombineGlobally(merge)
                | "Write" >> beam.Map(_write, evaluation.uri, unscored, models, span)
            )
        results = files.read(evaluation.uri)
        if results.other_classes:
            logging.warning("The model is compared with none: %s", results.other_classes)
        if results.missing:
            logging.warning("%s", results.missing)
        checks = results.checks()
        for check in checks:
            logging.info("%s: %s", "passed" if check.passed else "missed", check.sentence)
        _bless(blessing, all(check.passed for check in checks))


class _Compared(NamedTuple):
    """The baseline of a candidate, and whether both can be compared.

    Attributes:
      name: its name in messages.
      folder: the folder of the SavedModel.
      other: see `Results.other`; None if the candidate is compared with the baseline.
      known: see `Results.known`.
    """

    name: str
    folder: str
    other: OtherModel | None = None
    known: str = ""


def _compared(baseline: types.Artifact, candidate: str, labels: Labels) -> _Compared:
    """Return the baseline of a candidate.

    Args:
      baseline: the artifact of the baseline.
      candidate: the folder of the candidate.
      labels: the classes of this run.

    Raises:
      InputError: the labels fit both the scale of the baseline and the one that was detected, or
        the file of its classes is damaged.
      OSError, tensorflow.errors.OpError: a file of a model cannot be read.
    """
    folder = path_utils.serving_model_path(baseline.uri)
    name = baseline.get_string_custom_property(BASELINE_PROPERTY) or baseline.uri
    theirs = model_labels(folder)
    _check_scale(labels.label_scale, theirs.label_scale)
    if theirs.names != labels.names:
        return _Compared(name, folder, OtherModel(name, theirs.names))
    ours = held_out(read_origin(candidate))
    if ours is None:
        return _Compared(name, folder)
    return _Compared(name, folder, known=ours.may_be_known_to(held_out(read_origin(folder))))


def _check_scale(found: str, served: str) -> None:
    """Check that labels have the scale of the baseline, unless they contradict it.

    A local run checks the labels before it starts, see `platforms.local.preflight`.

    Args:
      found: the scale of the labels of this run; empty if it is unknown.
      served: that of the baseline.

    Raises:
      InputError: the scales differ, and all numbers on the first one are on the second one.
    """
    if found and numbers_of(found) < numbers_of(served):
        raise InputError(f"data.input_base: {two_scales(found, served)}")


def _write(
    scores: Scores, folder: str, unscored: Results, models: Mapping[str, str], span: int | None
) -> None:
    """Write all files of an evaluation.

    Args:
      scores: the scores of all reviews.
      folder: the folder of the ModelEvaluation.
      unscored: the results without the counts of the slices.
      models: CANDIDATE and, if there is one, BASELINE -> folder of the model.
      span: the number of the newest span of the input; None for an input without spans.
    """
    files.write_predictions(
        folder,
        {key: prediction for _, key, prediction in scores.sampled},
        [mistake.stored() for mistake in scores.mistakes],
        confused_reviews(scores),
    )
    if scores.changed:
        files.write_changed(folder, scores.changed.stored())
    if scores.reference:
        file = os.path.join(folder, reference.REFERENCE_FILE)
        reference.write(file, replace(scores.reference.reviews, span=span))
    results = unscored._replace(slices=scores.slices)
    tfma_files.write(folder, results, models)
    files.write(folder, results)
    if span is not None and scores.served:
        new = replace(scores.served.reviews, span=span)
        drop = results.settings.max_accuracy_drop
        found = new_span.compare_span(new, models[BASELINE], results.labels, drop)
        new_span.write(folder, found)


def _bless(blessing: types.Artifact, is_blessed: bool) -> None:
    """Write the blessing as TFX's Evaluator does."""
    name = constants.BLESSED_FILE_NAME if is_blessed else constants.NOT_BLESSED_FILE_NAME
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    blessing.set_int_custom_property(
        constants.ARTIFACT_PROPERTY_BLESSED_KEY,
        constants.BLESSED_VALUE if is_blessed else constants.NOT_BLESSED_VALUE,
    )
    logging.info("Blessing result %s written to %s", is_blessed, blessing.uri)


class EvaluatorSpec(types.ComponentSpec):
    """The inputs and outputs of TFX's Evaluator, and our parameters."""

    PARAMETERS = {
        "settings": ExecutionParameter(type=str),
        "min_accuracy": ExecutionParameter(type=float),
    }
    INPUTS = TfxSpec.INPUTS
    OUTPUTS = TfxSpec.OUTPUTS


class Evaluator(base_beam_component.BaseBeamComponent):
    """The component that evaluates a candidate and blesses it if it reaches all thresholds.

    The outputs are `evaluation` and `blessing`.

    Args:
      examples: raw Examples with a split `test`, which is evaluated.
      model: the candidate.
      baseline_model: the output of a `ServedBaseline` or a `PushedBaseline`, which may have no
        model. Then the candidate is not compared.
      settings: slices and thresholds.
      min_accuracy: the minimum accuracy, from 0 to 1, or a parameter of the run. It replaces the
        value in `settings`.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(EvaluatorExecutor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        baseline_model: BaseChannel,
        settings: Evaluation,
        min_accuracy: float | RuntimeParameter,
    ):
        super().__init__(
            spec=EvaluatorSpec(
                settings=settings.model_dump_json(),
                min_accuracy=min_accuracy,
                examples=examples,
                model=model,
                baseline_model=baseline_model,
                evaluation=types.Channel(type=standard_artifacts.ModelEvaluation),
                blessing=types.Channel(type=standard_artifacts.ModelBlessing),
            )
        )

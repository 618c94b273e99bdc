"""ServingCheck: serves a candidate as in production, and blocks the push if it fails.

`@component` reads the annotations, which `from __future__ import annotations` would make strings.
"""

import json
import os

from absl import logging
from tfx.components.evaluator import constants
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import Examples, InfraBlessing, Model, ModelEvaluation
from tfx.utils import path_utils

from components.evaluator.files import read, stored_predictions
from components.examples import read_sample
from components.properties import BLESSED_PROPERTY, CAUSE_PROPERTY, CHECK_FILE
from components.serving_check.candidate import try_candidate
from components.serving_check.results import Evaluated, check
from components.serving_check.settings import Thresholds

_SPLIT = "test"
_MAX_EXAMPLES = 1000
"""Most test Examples whose predictions are compared with the evaluation."""


@component
def ServingCheck(
    model: InputArtifact[Model],
    examples: InputArtifact[Examples],
    evaluation: InputArtifact[ModelEvaluation],
    blessing: OutputArtifact[InfraBlessing],
    settings: Parameter[str],
    golden: Parameter[str],
) -> None:
    """A model, raw Examples and the model's evaluation -> `blessing`, which a Pusher takes as
    `infra_blessing`. A model that fails the check is not pushed; this is no error.

    TFX's InfraValidator requires Docker or a Kubernetes cluster, and only sends requests.

    Args:
      model: the candidate.
      examples: raw Examples, of which the split `test` was evaluated.
      evaluation: the Evaluator's evaluation of the model.
      blessing: whether the model passed, and the file with all results.
      settings: the `Thresholds.parameters` of the same name.
      golden: likewise.
    """
    sentences = json.loads(golden)
    sample = read_sample(artifact_utils.get_split_uri([examples], _SPLIT), _MAX_EXAMPLES)
    answers, failure = try_candidate(
        path_utils.serving_model_path(model.uri), sample.examples, [text for _, text in sentences]
    )
    evaluated = Evaluated(
        reviews=read(evaluation.uri).candidate.examples,
        predictions=stored_predictions(evaluation.uri, sample.examples),
    )
    thresholds = Thresholds.model_validate_json(settings)
    found = check(answers, failure, thresholds, sample, evaluated, sentences)
    for result in found["results"]:
        logging.info("Serving check: %s", result)
    fileio.makedirs(blessing.uri)
    with fileio.open(os.path.join(blessing.uri, CHECK_FILE), "w") as file:
        file.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    # The property that an Evaluator's blessing has.
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY, model.id)
    blessing.set_int_custom_property(BLESSED_PROPERTY, int(found["passed"]))
    blessing.set_string_custom_property(CAUSE_PROPERTY, found["cause"])

"""VersionPusher: pushes a blessed model to a destination.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
"""

import os

from absl import logging
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import standard_artifacts

from components.destination import make_destination
from components.properties import BLESSED_PROPERTY, PUSHED, PUSHED_DESTINATION, PUSHED_VERSION
from components.saved_models import trained_model
from serving.drift.reference import REFERENCE_FILE


@component
def VersionPusher(
    model: InputArtifact[standard_artifacts.Model],
    model_blessing: InputArtifact[standard_artifacts.ModelBlessing],
    infra_blessing: InputArtifact[standard_artifacts.InfraBlessing],
    evaluation: InputArtifact[standard_artifacts.ModelEvaluation],
    pushed_model: OutputArtifact[standard_artifacts.PushedModel],
    destination: Parameter[str],
    keep_reviews: Parameter[int],
) -> None:
    """Push a model that has both blessings to a destination.

    TFX's own Pusher names a version by the clock alone. If the clock is set back, an older version
    remains the newest one. A second push within the same second copies nothing.

    Args:
      model: the output of the Trainer.
      model_blessing: the blessing of the Evaluator.
      infra_blessing: the blessing of the ServingCheck.
      evaluation: the output of the Evaluator, with the reviews that `amazon-reviews watch` compares
        new ones with.
      pushed_model: the output: a copy of the pushed model, with the properties that TFX's own
        Pusher sets; empty if the model lacks a blessing.
      destination: the JSON of `make_destination`.
      keep_reviews: 1 if the pushed version keeps these reviews, else 0.

    Raises:
      InputError: the model was deleted, is damaged or was rolled back; see `Destination.push`.
      OSError, tensorflow.errors.OpError, RuntimeError: the destination cannot be read or written.
    """
    blessings = (model_blessing, infra_blessing)
    if not all(blessing.get_int_custom_property(BLESSED_PROPERTY) for blessing in blessings):
        logging.info("The model lacks a blessing, and is not pushed")
        return
    source = trained_model(model.uri)
    file = os.path.join(evaluation.uri, REFERENCE_FILE)
    # The evaluation of an earlier version of this code, which a cache returns, has no such file.
    reference = file if keep_reviews and fileio.exists(file) else None
    push = make_destination(destination).push(source, pushed_model.uri, reference)
    # The properties that TFX's own Pusher sets.
    pushed_model.set_int_custom_property(PUSHED, 1)
    pushed_model.set_string_custom_property(PUSHED_DESTINATION, push.location)
    pushed_model.set_string_custom_property(PUSHED_VERSION, push.version)
    logging.info("Pushed to %s: version %s", push.location, push.version)

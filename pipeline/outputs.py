"""The outputs that the components of a user's project can read."""

from __future__ import annotations

from dataclasses import dataclass

from tfx.types import BaseChannel


@dataclass(frozen=True)
class Outputs:
    """The outputs of the nodes before the push, which are the inputs of a project's components.

    Attributes:
      examples: raw Examples in the splits train, eval and test, with the names of the classes.
      rejected: RejectedLines, the lines of the files that are no Example.
      schema: the schema of the Examples.
      statistics: the ExampleStatistics of each split.
      anomalies: the ExampleAnomalies of each split.
      transform_graph: the TransformGraph.
      transformed_examples: the Examples with the features that the model reads.
      model: the trained model.
      model_run: the logs of the training.
      evaluation: the ModelEvaluation of the model and of the served one.
      blessing: the ModelBlessing of the evaluation.
      serving_blessing: the InfraBlessing of the serving check.
    """

    examples: BaseChannel
    rejected: BaseChannel
    schema: BaseChannel
    statistics: BaseChannel
    anomalies: BaseChannel
    transform_graph: BaseChannel
    transformed_examples: BaseChannel
    model: BaseChannel
    model_run: BaseChannel
    evaluation: BaseChannel
    blessing: BaseChannel
    serving_blessing: BaseChannel

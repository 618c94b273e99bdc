"""RunReport: writes one HTML page on the run, as the last component."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from components.artifacts import Classification, KeyFigures, RejectedLines, Report
from components.run_report import executor


class RunReportSpec(types.ComponentSpec):
    """The interface of RunReport."""

    PARAMETERS = {
        executor.NAME_KEY: ExecutionParameter(type=str),
        executor.SETTINGS_KEY: ExecutionParameter(type=str),
        executor.METADATA_KEY: ExecutionParameter(type=str, optional=True),
        executor.CREATED_KEY: ExecutionParameter(type=str, optional=True),
        "input_base": ExecutionParameter(type=str, optional=True),
        "epochs": ExecutionParameter(type=int, optional=True),
        "strategy": ExecutionParameter(type=str, optional=True),
        "min_accuracy": ExecutionParameter(type=float, optional=True),
    }
    INPUTS = {
        executor.REJECTED_KEY: ChannelParameter(type=RejectedLines),
        executor.STATISTICS_KEY: ChannelParameter(type=standard_artifacts.ExampleStatistics),
        executor.ANOMALIES_KEY: ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        executor.EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples),
        executor.MODEL_KEY: ChannelParameter(type=standard_artifacts.Model),
        executor.MODEL_RUN_KEY: ChannelParameter(type=standard_artifacts.ModelRun),
        executor.EVALUATION_KEY: ChannelParameter(type=standard_artifacts.ModelEvaluation),
        executor.BLESSING_KEY: ChannelParameter(type=standard_artifacts.ModelBlessing),
        executor.CHECK_KEY: ChannelParameter(type=standard_artifacts.InfraBlessing),
        executor.PUSHED_KEY: ChannelParameter(type=standard_artifacts.PushedModel, optional=True),
    }
    OUTPUTS = {
        executor.REPORT_KEY: ChannelParameter(type=Report),
        executor.METRICS_KEY: ChannelParameter(type=KeyFigures),
        executor.CLASSIFICATION_KEY: ChannelParameter(type=Classification),
    }


class RunReport(base_component.BaseComponent):
    """The artifacts of a run -> `report`, `metrics` and `classification`.

    The page is the file `report.html` in the artifact `report`. On a cluster, where the artifact is
    a `system.HTML`, it is the artifact itself.
    """

    SPEC_CLASS = RunReportSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        name: str,
        settings: str,
        rejected: types.BaseChannel,
        statistics: types.BaseChannel,
        anomalies: types.BaseChannel,
        examples: types.BaseChannel,
        model: types.BaseChannel,
        model_run: types.BaseChannel,
        evaluation: types.BaseChannel,
        blessing: types.BaseChannel,
        check: types.BaseChannel,
        pushed_model: types.BaseChannel | None = None,
        metadata: str | None = None,
        parameters: Mapping[str, RuntimeParameter] | None = None,
    ):
        """Construct the component.

        Args:
          name: name of the pipeline.
          settings: JSON of all settings.
          rejected, statistics, anomalies, examples, model, model_run, evaluation, blessing, check,
            pushed_model: the outputs that the report describes; `check` is the `blessing` of a
            ServingCheck.
          metadata: `paths.metadata`, if the component can read ML Metadata there. The report then
            has the duration of each component, and is never a cache hit.
          parameters: the parameters of the run, which replace values of `settings`; their names are
            those of RUN_PARAMETERS.
        """
        super().__init__(
            spec=RunReportSpec(
                name=name,
                settings=settings,
                metadata=metadata,
                created=None if metadata is None else repr(time.time()),
                rejected=rejected,
                statistics=statistics,
                anomalies=anomalies,
                examples=examples,
                model=model,
                model_run=model_run,
                evaluation=evaluation,
                blessing=blessing,
                check=check,
                pushed_model=pushed_model,
                report=types.Channel(type=Report),
                metrics=types.Channel(type=KeyFigures),
                classification=types.Channel(type=Classification),
                **(parameters or {}),
            )
        )

"""ReviewExampleGen: a file-based ExampleGen for review files of several formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tfx import types
from tfx.components.example_gen import driver, input_processor, utils
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import example_gen_pb2, range_config_pb2
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ExecutionParameter
from tfx.types.standard_component_specs import FileBasedExampleGenSpec

from components.artifacts import RejectedLines
from components.review_example_gen import executor, splits
from components.review_example_gen.inputs import OPTIONS_KEY, Options, input_folder
from preprocessing.reading.files import find_sources, fingerprint


class InputProcessor(input_processor.FileBasedInputProcessor):
    """TFX's input processor, which finds {SPAN}, {VERSION} and dates, with our list of files.

    It fingerprints exactly the files that the executor reads. TFX's own glob expands `**` to one
    folder only, and interprets a `[` in the name of a folder as a pattern.
    """

    def __init__(
        self,
        input_base_uri: str,
        splits: Iterable[example_gen_pb2.Input.Split],
        range_config: range_config_pb2.RangeConfig | None = None,
    ):
        self._base = input_folder(input_base_uri)
        super().__init__(self._base, splits, range_config)

    def resolve_span_and_version(self) -> tuple[int, int | None]:
        """See TFX's InputProcessor.

        Raises:
          InputError: see `find_sources`.
          ValueError: there is no file with a span or version.
        """
        span, version = 0, None
        if any(any(utils.verify_split_pattern_specs(split)) for split in self._splits):
            span, version = super().resolve_span_and_version()
        patterns = {
            split.name: self.get_pattern_for_span_version(split.pattern, span, version)
            for split in self._splits
        }
        self._fingerprint = fingerprint(self._base, find_sources(self._base, patterns))
        return span, version


class Driver(driver.FileBasedDriver):
    def get_input_processor(
        self,
        splits: Iterable[example_gen_pb2.Input.Split],
        range_config: range_config_pb2.RangeConfig | None = None,
        input_base_uri: str | None = None,
    ) -> InputProcessor:
        assert input_base_uri
        return InputProcessor(input_base_uri, splits, range_config)


class ReviewExampleGenSpec(types.ComponentSpec):
    """The interface of TFX's file-based ExampleGens, with `options` and `rejected`."""

    PARAMETERS = {**FileBasedExampleGenSpec.PARAMETERS, OPTIONS_KEY: ExecutionParameter(type=str)}
    INPUTS = FileBasedExampleGenSpec.INPUTS
    OUTPUTS = {
        **FileBasedExampleGenSpec.OUTPUTS,
        executor.REJECTED_KEY: ChannelParameter(type=RejectedLines),
    }


class ReviewExampleGen(base_beam_component.BaseBeamComponent):
    """Raw review files -> `examples` (splits train, eval, test) and `rejected` lines.

    Its driver is that of TFX's FileBasedExampleGen: it fingerprints the input files, so that a run
    on unchanged files is a cache hit. It is not a subclass of FileBasedExampleGen, whose
    constructor allows no further output.
    """

    SPEC_CLASS = ReviewExampleGenSpec
    DRIVER_CLASS = Driver
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        input_base: str | RuntimeParameter,
        patterns: Mapping[str, str],
        options: Options,
    ):
        """Construct the component.

        Args:
          input_base: folder or gs:// prefix with the raw files; `sample`: the package's own.
          patterns: group -> glob below `input_base`; groups are the splits train, eval and test,
            or the single group `all`.
          options: the options of the reader, and the limits.
        """
        inputs = [
            example_gen_pb2.Input.Split(name=name, pattern=pattern)
            for name, pattern in patterns.items()
        ]
        outputs = [
            example_gen_pb2.SplitConfig.Split(name=name, hash_buckets=1) for name in splits.SPLITS
        ]
        spec = ReviewExampleGenSpec(
            input_base=input_base,
            input_config=example_gen_pb2.Input(splits=inputs),
            output_config=example_gen_pb2.Output(
                split_config=example_gen_pb2.SplitConfig(splits=outputs)
            ),
            output_data_format=example_gen_pb2.FORMAT_TF_EXAMPLE,
            output_file_format=example_gen_pb2.FORMAT_TFRECORDS_GZIP,
            options=options.model_dump_json(),
            examples=types.Channel(type=standard_artifacts.Examples),
            rejected=types.Channel(type=RejectedLines),
        )
        super().__init__(spec=spec)

"""Driver of ReviewExampleGen: fingerprints exactly the files that its executor reads.

The glob of TFX's own driver differs from Beam's: it expands `**` to one folder only, and interprets
a `[` in the name of a folder as a pattern.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfx.components.example_gen import driver, input_processor, utils
from tfx.proto import example_gen_pb2, range_config_pb2

from components.review_example_gen.inputs import input_folder
from preprocessing.reading.find import find_sources, fingerprint


class InputProcessor(input_processor.FileBasedInputProcessor):
    """TFX's input processor, which finds {SPAN}, {VERSION} and dates, with our list of files."""

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
    """TFX's driver with our InputProcessor."""

    def get_input_processor(
        self,
        splits: Iterable[example_gen_pb2.Input.Split],
        range_config: range_config_pb2.RangeConfig | None = None,
        input_base_uri: str | None = None,
    ) -> InputProcessor:
        """See TFX's Driver."""
        assert input_base_uri
        return InputProcessor(input_base_uri, splits, range_config)

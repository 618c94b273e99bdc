"""SchemaGen: the schema in this package, as an artifact.

The parameter of TFX's ImportSchemaGen is a path. A path of the machine that compiles does not exist
in a container, and an edited file under the same path would be a cache hit.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
"""

import os
from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.schema_gen.executor import DEFAULT_FILE_NAME
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import Artifact
from tfx.types.standard_artifacts import Examples, Schema
from tfx.utils import io_utils

import preprocessing
from preprocessing.features import LABEL
from preprocessing.labels import read_labels

SCHEMA = (Path(preprocessing.__file__).parent / "schema" / "schema.pbtxt").read_text()
"""The text of the schema of raw Examples, a `schema_pb2.Schema`."""


def read_schema(artifacts: list[Artifact]) -> schema_pb2.Schema:
    """Return the schema in the only artifact of an input.

    Args:
      artifacts: a list of one Schema.

    Raises:
      OSError, tensorflow.errors.OpError: the schema cannot be read.
    """
    [schema] = artifacts
    return io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(schema.uri))


@component
def SchemaGen(
    examples: InputArtifact[Examples], schema: OutputArtifact[Schema], text: Parameter[str]
) -> None:
    """Write the schema of raw Examples to `schema`.

    Args:
      examples: the Examples, which contain the names of the classes.
      schema: the output.
      text: the text of the schema. As a parameter it is a part of the cache key.
    """
    text = with_classes(text, read_labels(examples.uri).number)
    io_utils.write_string_file(os.path.join(schema.uri, DEFAULT_FILE_NAME), text)


def with_classes(text: str, classes: int) -> str:
    """Return a schema with a number of classes; of more than two a split may lack some.

    Args:
      text: the schema for two classes, in the text format of protobuf.
      classes: the number of classes.
    """
    schema = text_format.Parse(text, schema_pb2.Schema())
    for feature in schema.feature:
        if feature.name == LABEL:
            feature.int_domain.max = classes - 1
            feature.unique_constraints.max = classes
    return str(text_format.MessageToString(schema))

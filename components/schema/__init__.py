"""ReviewSchemaGen: the schema that this package brings, as an artifact."""

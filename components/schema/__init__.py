"""ReviewSchemaGen: the schema in this package, as an artifact."""

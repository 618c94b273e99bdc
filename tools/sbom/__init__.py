"""The bill of materials of a release, in the format of CycloneDX: `python -m tools.sbom`."""

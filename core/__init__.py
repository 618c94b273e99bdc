"""The foundation of all other packages.

It has the errors and exit codes, files and storage, processes and their progress, the base of the
settings, local Beam pipelines, ML Metadata, and the values that several packages exchange.

This package imports no other package of the project.
"""

"""The foundation of all other packages: errors, exit codes, progress, the base of the settings.

This package imports no other package of the project.
"""

"""What every other package may use: errors, exit codes, progress, the base of the settings.

This package imports no other package of the project.
"""

"""Shim for Beam's --setup_file; the metadata lives in pyproject.toml."""

from setuptools import setup

setup()

"""Credentials and errors of Google Cloud."""

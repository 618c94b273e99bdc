"""Processes, devices and strategies of a training."""

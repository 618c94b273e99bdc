"""Trainings on several machines: a step of a compiled pipeline starts a job and follows it."""

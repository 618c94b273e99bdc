"""Trainings on several machines, which a step of a compiled pipeline starts and follows."""

"""The processes, devices and strategies of a training."""

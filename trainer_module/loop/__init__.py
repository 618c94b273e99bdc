"""The training loop: epochs, checkpoints, metrics, early stopping, measurements."""

"""The training loops and their callbacks: checkpoints, metrics, early stopping, measurements."""

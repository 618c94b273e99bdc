"""From TFRecords to batches: files, shares of processes, batches of similar length."""

"""TFRecords to batches: files, shares of replicas, batches of one length."""

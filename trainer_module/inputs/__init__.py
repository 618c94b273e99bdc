"""From TFRecords to batches: shards of processes, batches of similar length."""

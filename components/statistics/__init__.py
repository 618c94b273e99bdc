"""StatisticsGen: the statistics of a sample of each split."""

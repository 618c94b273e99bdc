"""StatisticsGen: TFX's component, of which a sample is enough."""

"""Transform: TFX's component with an executor that works on batches from file to file."""

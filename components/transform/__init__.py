"""Transform: TFX's component, with an executor that processes batches from file to file."""

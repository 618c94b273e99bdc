"""The REST server: TensorFlow Serving's API for the pushed models, and a page to try them."""

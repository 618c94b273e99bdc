"""A training as a CustomJob of Vertex AI."""

"""The names of the signatures of an exported model, which the Trainer writes and servers call."""

from __future__ import annotations

SERVING_DEFAULT = "serving_default"
"""Serialized Examples -> the scores and labels. The signature of a request that names none."""
PREDICT_TEXT = "predict_text"
"""Texts -> the scores and labels."""
PREDICT_NGRAMS = "predict_ngrams"
"""Ids of n-grams that compiled code computed -> the scores and labels. Only a model whose single
feature is n-grams has it."""
TRANSFORM_FEATURES = "transform_features"
"""Serialized Examples -> the features of the model, and the label, as Transform computes them."""
CLASSIFY = "classify"
"""The signature for the `:classify` of TensorFlow Serving."""

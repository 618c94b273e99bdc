"""The default input, synthetic product reviews, and the generator of these reviews."""

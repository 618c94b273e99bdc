"""The embedded default input: synthetic product reviews and the generator that wrote them."""

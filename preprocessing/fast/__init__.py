"""Code written by hand for speed, each module with the measurement that justifies it."""

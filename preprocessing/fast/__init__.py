"""Code written by hand for speed; each module names the measurement that justifies it."""

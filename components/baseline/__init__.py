"""Which model a candidate is compared with."""

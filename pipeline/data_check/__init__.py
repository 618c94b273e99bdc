"""`amazon-reviews data check`: find, convert, inspect, read a sample, and name the remedies."""

"""The `amazon-reviews` command, one module for each of its commands."""

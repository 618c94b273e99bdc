"""The `amazon-reviews` command; the module of a command is imported when it is called."""

"""Everything about clusters: compile, container entry point, image, submit, manifests."""

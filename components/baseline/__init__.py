"""The model in production that a candidate is compared with: by Resolver, or the last pushed."""

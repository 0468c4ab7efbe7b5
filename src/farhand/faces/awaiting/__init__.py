"""Pause and resume: a stream of tags that ends at a pause, and one request with all its results."""

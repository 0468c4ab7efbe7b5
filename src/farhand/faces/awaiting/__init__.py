"""Pause and resume: a stream of tags that ends at a pause, and one post that brings all answers to it."""

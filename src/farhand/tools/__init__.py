"""Declaring tools and looking them up."""

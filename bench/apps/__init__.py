"""Servers to measure, each started by its name: farhand as it is served, and the references."""

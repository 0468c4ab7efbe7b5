"""The loop, and what it needs to run, wait, park and resume."""

"""Tests of the ready-made hooks."""

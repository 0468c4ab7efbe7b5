"""The desk: the only writer of a call."""

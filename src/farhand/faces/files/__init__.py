"""Files that are too big for a result: uploaded once, then referred to."""

"""Outside programs register tools, are asked to run them, and bring results."""

"""What the commands `call`, `tools`, `runs` and `inbox` ask of a running server."""

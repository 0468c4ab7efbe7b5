"""The commands that talk to a running server: `call`, `tools`, `runs`, `inbox`."""

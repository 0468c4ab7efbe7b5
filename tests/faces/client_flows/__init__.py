"""The clients that each wire was made for, as scripts: what they send and what they rely on."""

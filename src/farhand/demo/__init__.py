"""The demo: an agent with a tool of every kind, and a scripted model that uses them all.

It uses only the public API; nothing else in farhand depends on it.
"""

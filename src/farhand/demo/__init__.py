"""The demo: an agent with a tool of every kind, and a scripted model that knows them all.

An ordinary user of the public API: nothing here is known to the rest of farhand.
"""

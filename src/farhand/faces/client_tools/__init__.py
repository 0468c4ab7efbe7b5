"""The wire of registered clients: programs register tools, get calls, and send results."""

"""Assembly: agent, store and faces become one ASGI app, behind one authenticator."""

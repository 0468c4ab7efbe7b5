"""Framing and limits of HTTP, SSE, WebSockets and JSON. Must not know calls or faces."""

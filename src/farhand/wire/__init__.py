"""Framing and limits: how bytes come in and go out. Knows HTTP, SSE and JSON, never a call or a face."""

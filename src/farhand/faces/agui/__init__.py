"""AG-UI clients, and CopilotKit without a runtime of its own."""

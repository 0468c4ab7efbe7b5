"""AG-UI clients, and CopilotKit without its Node runtime."""

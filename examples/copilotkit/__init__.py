"""A CopilotKit page on farhand: its tools, its cards and its approvals, without a Node runtime."""

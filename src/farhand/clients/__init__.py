"""Outside parties that registered to run tools: who is here, with which tools, and what they are asked."""

"""A script that pays invoices, and a page beside it that shows and approves them. No chat, no model."""

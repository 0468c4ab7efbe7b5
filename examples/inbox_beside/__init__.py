"""A script that pays invoices, and a page that shows them and asks for approval. No chat, no model."""

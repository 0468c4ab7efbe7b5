"""A shop whose assistant lists the orders of whoever asks, and refunds one when a manager approves."""

"""A shop whose assistant lists the orders of the current user, and refunds one when a manager approves."""

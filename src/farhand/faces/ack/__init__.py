"""The held wait: results, takes and approvals by plain POST."""

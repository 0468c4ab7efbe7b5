"""The ack wire: results, takes and approvals by plain POST, while a stream is held open."""

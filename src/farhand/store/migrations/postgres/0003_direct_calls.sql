-- Open calls without a run: every worker looks at them again and again for those that nobody looks after.
CREATE INDEX calls_direct ON calls (call_no) WHERE is_open AND run_no IS NULL;

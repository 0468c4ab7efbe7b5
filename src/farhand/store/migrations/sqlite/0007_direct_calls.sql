-- Open calls without a run: the server looks at them again and again for those that nobody looks after.
CREATE INDEX calls_direct ON calls (run_no) WHERE is_open = 1 AND run_no IS NULL;

"""All rules of calls, runs and threads: a state, a command and the time give events, or a reason for refusal.

Pure: nothing here waits, reads a clock, generates an id or writes. If the store refuses the append of a
decision (`eventlog.threads`), because the thread has moved on or because of its time limits, the same command
is decided again, on the new state and at the new time. `docs/glossary.md` defines the nouns.
"""

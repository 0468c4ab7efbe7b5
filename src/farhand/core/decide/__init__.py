"""All rules of calls, runs and threads: a state, a command and the time give events, or a reason for refusal.

Pure: nothing here waits, reads a clock, generates an id or writes. A decision that lost a race, because the
store refused its append (`eventlog.threads`), is made again on the new state.
"""

"""All rules of calls, runs and threads: a state, a command and the time give events, or the reason why not.

Pure: nothing here waits, reads a clock, draws an id or writes. A decision that lost a race, since the store
refused its append (`eventlog.threads`), is made again on the state as it is then.
"""

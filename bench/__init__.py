"""The published figures, measured by `make bench`: one file for each, and what they share.

p01 … p15           one published figure each: how it is measured, what it is compared with
machine.py          reads cores, processor time and memory from the system
server_process.py   a server in a process and on a core of its own
load.py, chats.py   the load client, in another process on the other core; the load of live chats
apps/               farhand as it is served, and hand-written references
peers/              other libraries on the same work, each in its own environment
table.py            the table of results; chart.py draws it; results.py saves and publishes it
rounds.py           alternating rounds of the contenders
parts.py            where the time of a round trip goes, by part and by function
counts.py           functions and instructions of a round trip; reads.py counts reads of the store
targets.py          counted targets of the event log and the store; logs.py how large a log grows
comparison.py       another revision against ours
costs.py            costs of a few operations with PostgreSQL; simulate_scale.py simulates up to a million
calls faults.py           errors of a measurement
LOG.md              what was tried for speed, and its effect

Every figure is a ratio to a reference measured in the same run: machines differ, and one machine differs from
hour to hour.
"""

"""The figures we publish, measured again by `make bench`: one file for each, and what they share.

p01 … p15     one published number each: how it is measured, what it is compared with
machine.py    cores, processor time, memory: read from the system
served.py     a server in a process and on a core of its own
load.py       the load, in another process on the other core; chats.py the load of live chats
apps/         farhand as it is served, and the references written by hand
peers/        other libraries on the same work, each in an environment of its own
table.py      the table; picture.py draws it; kept.py writes it into docs/explanation/speed.md
LOG.md        what was tried for speed, and what it gave
parts.py      where the time of a round trip goes, by part and by function
faults.py     what goes wrong, in words
compared.py   another revision and ours in turns; wanted.py what one log is to be; logs.py how large it grows
costs.py      what a few things cost with PostgreSQL; simulate_scale.py plays up to a million calls with that

Every figure is a ratio to a reference measured in the same run: machines differ, and one machine differs from
hour to hour.
"""

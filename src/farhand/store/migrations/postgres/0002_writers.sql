-- What the last transaction of each process was. A process that lost its connection in the middle of a commit
-- looks here whether it was kept: the number of a transaction may be given to another one after a crash.
CREATE TABLE writers (
    name text PRIMARY KEY,
    batch bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);

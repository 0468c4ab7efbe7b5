-- Files that are gone, while their pieces are not yet: those go a few at a time, since removing a blob costs as much
-- as writing it. Until then their numbers are not used again.
CREATE TABLE file_rubbish (
    file_no INTEGER PRIMARY KEY
);

/**
 * Nodes that wait for a person, an event or a time: one row for each job that is set aside for that, from the beginning of
 * the wait to its end. `digest`: SHA-256 of the token with which whoever has it may end the wait.
 */
export const waits = `
CREATE TABLE waits (
  number INTEGER NOT NULL PRIMARY KEY REFERENCES jobs (number),
  organization_id TEXT NOT NULL,
  awaits TEXT NOT NULL CHECK (awaits IN ('approval', 'event', 'time')),
  digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  created_at INTEGER NOT NULL,
  remind_at INTEGER,
  due_at INTEGER
) STRICT;
CREATE INDEX waits_due ON waits (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX waits_reminders ON waits (remind_at) WHERE remind_at IS NOT NULL;
CREATE INDEX waits_open ON waits (organization_id, awaits, number);
CREATE TRIGGER waits_end AFTER UPDATE OF awaits ON jobs WHEN OLD.awaits IS NOT NULL AND NEW.awaits IS NULL BEGIN
  DELETE FROM waits WHERE number = OLD.number;
END;
`

/**
 * What organizations use of their limits. The bytes of their files are summed up in a table, which the code that writes
 * rows of files keeps. Triggers would do it too, but with a trigger SQLite searches the library for each new file. Rows of
 * files are kept after their removal, so the uploads of a day are counted in the table of files: deleting a file gives no
 * upload back.
 */
export const organizationUse = `
CREATE TABLE stored_bytes (
  organization_id TEXT NOT NULL PRIMARY KEY REFERENCES organizations (id),
  bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO stored_bytes SELECT organization_id, sum(bytes) FROM files WHERE removed_at IS NULL GROUP BY organization_id;
CREATE INDEX files_uploaded ON files (organization_id, created_at) WHERE purpose = 'upload';
`

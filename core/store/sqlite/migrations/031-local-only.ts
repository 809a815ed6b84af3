/**
 * Whether work of an organization or a token stays on this machine. Of an organization, null is what its plan says.
 */
export const localOnly = `
ALTER TABLE organizations ADD COLUMN local_only INTEGER CHECK (local_only IN (0, 1));
ALTER TABLE tokens ADD COLUMN local_only INTEGER NOT NULL DEFAULT 0 CHECK (local_only IN (0, 1));
`

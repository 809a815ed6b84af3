/**
 * What running calls may cost as fallbacks with a limit, millionths of the currency unit. A row is written before the request
 * leaves, and deleted with the ledger row of its call.
 */
export const fallbackHolds = `
CREATE TABLE fallback_holds (
  id TEXT NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL,
  model_id TEXT NOT NULL,
  held INTEGER NOT NULL CHECK (held > 0)
) STRICT, WITHOUT ROWID;
`

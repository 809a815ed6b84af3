/** Adds the region in which a job must run; null if any will do. */
export const jobRegion = `
ALTER TABLE jobs ADD COLUMN region TEXT CHECK (region IN ('US', 'EU'));
`

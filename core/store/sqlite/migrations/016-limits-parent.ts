/** A token shares limits of every kind with the tokens above it, not only what may be spent. */
export const limitsParent = `
ALTER TABLE tokens RENAME COLUMN budget_parent TO limits_parent;
`

/** Why a node was skipped; null for one that was not, or before this was kept. */
export const skipReason = `
ALTER TABLE execution_nodes ADD COLUMN skip_reason TEXT
  CHECK (skip_reason IN ('condition', 'skipped_node', 'failure'));
`

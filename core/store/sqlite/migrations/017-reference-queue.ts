/** Of a job that waited while models were loaded and evicted: what it would have waited in the order of the queue. */
export const referenceQueue = `
ALTER TABLE jobs ADD COLUMN reference_queue_ms INTEGER CHECK (reference_queue_ms >= 0);
ALTER TABLE ledger ADD COLUMN reference_queue_ms INTEGER CHECK (reference_queue_ms >= 0);
`

/** The trace that an execution or a batch belongs to; its jobs and its webhooks have the same. */
export const parentTraceparent = `
ALTER TABLE executions ADD COLUMN traceparent TEXT CHECK (length(traceparent) = 55);
ALTER TABLE batches ADD COLUMN traceparent TEXT CHECK (length(traceparent) = 55);
`

/** The trace that a job belongs to, as the `traceparent` header of its request said. */
export const traceparent = `
ALTER TABLE jobs ADD COLUMN traceparent TEXT CHECK (length(traceparent) = 55);
`

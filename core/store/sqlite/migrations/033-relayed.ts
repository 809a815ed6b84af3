/** Whether the request of a job was passed on by another infer: such work is not passed on again. */
export const relayed = `
ALTER TABLE jobs ADD COLUMN relayed INTEGER NOT NULL DEFAULT 0 CHECK (relayed IN (0, 1));
`

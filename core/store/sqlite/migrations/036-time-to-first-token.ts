/** Of a synchronous call: from the request to the first piece of text of its stream, milliseconds. */
export const timeToFirstToken = `
ALTER TABLE ledger ADD COLUMN time_to_first_token_ms INTEGER CHECK (time_to_first_token_ms >= 0);
`

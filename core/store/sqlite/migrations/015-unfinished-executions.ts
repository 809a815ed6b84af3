/** The unfinished executions of an organization and a token, which are few among those that are kept. */
export const unfinishedExecutions = `
CREATE INDEX executions_unfinished ON executions (organization_id, token_id) WHERE finished_at IS NULL;
`

/**
 * A token that was created by one with limits also counts against those of that token. `budget_parent` is the first
 * token of the rotations of the nearest such creator, `spent_below` what the tokens below a token have spent, which is
 * counted from this migration on.
 */
export const parentBudgets = `
ALTER TABLE tokens ADD COLUMN budget_parent TEXT;
ALTER TABLE spend ADD COLUMN spent_below INTEGER NOT NULL DEFAULT 0 CHECK (spent_below >= 0);
CREATE INDEX tokens_origin ON tokens (origin_id, id) WHERE origin_id IS NOT NULL;

UPDATE tokens SET budget_parent = (
  WITH RECURSIVE creators (origin, is_limited) AS (
    SELECT coalesce(origin_id, id), coalesce(monthly_spend_limit, requests_per_minute, jobs_per_minute,
      tokens_per_minute, concurrent_requests) IS NOT NULL FROM tokens AS creator
      WHERE id = tokens.created_by AND organization_id = tokens.organization_id
    UNION ALL SELECT coalesce(creator.origin_id, creator.id), coalesce(creator.monthly_spend_limit,
      creator.requests_per_minute, creator.jobs_per_minute, creator.tokens_per_minute,
      creator.concurrent_requests) IS NOT NULL
      FROM creators JOIN tokens AS below ON below.id = creators.origin
      JOIN tokens AS creator ON creator.id = below.created_by AND creator.organization_id = below.organization_id
      WHERE NOT is_limited
  ) SELECT origin FROM creators WHERE is_limited
) WHERE origin_id IS NULL;
UPDATE tokens SET budget_parent = (SELECT first.budget_parent FROM tokens AS first WHERE first.id = tokens.origin_id)
  WHERE origin_id IS NOT NULL;
`

/** Of work whose request named another model than the one that did it: the name, and why a fallback answered. */
export const modelNames = `
ALTER TABLE jobs ADD COLUMN requested_model TEXT;
ALTER TABLE jobs ADD COLUMN fallback_reason TEXT CHECK (fallback_reason IN ('failed', 'context', 'wait'));
ALTER TABLE ledger ADD COLUMN requested_model TEXT;
ALTER TABLE ledger ADD COLUMN fallback_reason TEXT CHECK (fallback_reason IN ('failed', 'context', 'wait'));
`

/**
 * A deleted organization keeps its row, to which its ledger and its audit log refer. Its name is free again: the column
 * `name`, which is unique, then has the id, and `deleted_name` the name. `erased_at` is set when nothing is left to
 * erase.
 *
 * Organizations that are not active are few and are looked for every second, hence their index.
 *
 * The command line acts for a user of the operating system, which the audit log names.
 */
export const organizationEnds = `
ALTER TABLE organizations ADD COLUMN deleted_name TEXT;
ALTER TABLE organizations ADD COLUMN erased_at INTEGER;
CREATE INDEX organizations_inactive ON organizations (status) WHERE status <> 'active';
ALTER TABLE audit_log ADD COLUMN os_user TEXT;
`

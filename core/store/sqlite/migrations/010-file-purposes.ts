/**
 * The purpose of a file in the files API; null for files that the API does not list, such as inputs and results of jobs.
 * Files that were uploaded through another API are user data.
 */
export const filePurposesMigration = `
ALTER TABLE files ADD COLUMN api_purpose TEXT;
UPDATE files SET api_purpose = 'user_data' WHERE purpose = 'upload' AND removed_at IS NULL;
CREATE INDEX files_of_api ON files (organization_id, id) WHERE removed_at IS NULL AND api_purpose IS NOT NULL;
CREATE INDEX files_of_purpose ON files (organization_id, api_purpose, id)
  WHERE removed_at IS NULL AND api_purpose IS NOT NULL;
`

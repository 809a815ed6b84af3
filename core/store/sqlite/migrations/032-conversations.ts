/**
 * Conversations of people and of tokens, with their messages as a tree. `owner` is the id of a user, or of the first token
 * of the rotations of a token without a user. `call_storage` of an organization says whether such content is stored.
 */
export const conversations = `
ALTER TABLE organizations ADD COLUMN call_storage TEXT NOT NULL DEFAULT 'metadata'
  CHECK (call_storage IN ('metadata', 'content'));
CREATE TABLE conversations (
  number INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  title TEXT NOT NULL,
  folder TEXT,
  system TEXT NOT NULL,
  parameters TEXT NOT NULL CHECK (json_type(parameters) = 'object'),
  current_message TEXT,
  revision INTEGER NOT NULL CHECK (revision > 0),
  messages INTEGER NOT NULL CHECK (messages >= 0),
  length INTEGER NOT NULL CHECK (length >= 0),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX conversations_newest ON conversations (organization_id, owner, updated_at, number);
CREATE INDEX conversations_folders ON conversations (organization_id, owner, folder) WHERE folder IS NOT NULL;

CREATE TABLE conversation_messages (
  number INTEGER NOT NULL PRIMARY KEY,
  conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
  id TEXT NOT NULL,
  parent TEXT,
  text TEXT NOT NULL,
  details TEXT NOT NULL CHECK (json_type(details) = 'object'),
  UNIQUE (conversation, id)
) STRICT;
CREATE INDEX conversation_messages_in_order ON conversation_messages (conversation, number);
`

/**
 * Links with which anybody reads a conversation until a time. A link whose conversation is deleted stays until then, without
 * it, so that its page can say why it shows nothing.
 */
export const conversationLinks = `
CREATE TABLE conversation_links (
  id TEXT NOT NULL PRIMARY KEY,
  conversation INTEGER REFERENCES conversations (number) ON DELETE SET NULL,
  last_message TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_links_of ON conversation_links (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX conversation_links_expiry ON conversation_links (expires_at);
`

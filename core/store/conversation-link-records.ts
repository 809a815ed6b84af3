import type { CallStorage } from './account-records.ts'
import type { ConversationMessage, ConversationOwner } from './conversation-records.ts'

/** A link with which anybody reads a conversation. */
export interface ConversationLink {
  id: string
  /** Epoch milliseconds. */
  createdAt: number
  expiresAt: number
}

/** The most links of one conversation that have not expired. */
export const maxConversationLinks = 20

/** What a link shows. */
export interface LinkedConversation {
  organizationId: string
  callStorage: CallStorage
  title: string
  /** The last message of the branch that was shown when the link was created. */
  lastMessage: string
  /** By `find` all messages of the conversation, parents first. */
  messages: ConversationMessage[]
}

/** Links to conversations. Only `find` serves more than the owner of the conversation. */
export interface ConversationLinkStore {
  /**
   * Creates a link to the branch that is shown now. Undefined: there is no such conversation. Rejects with Failure `conflict` if it
   * has no message, and `storage_full`.
   */
  create(owner: ConversationOwner, conversation: string, link: ConversationLink): Promise<ConversationLink | undefined>
  /** The links that have not expired, the newest first. */
  list(owner: ConversationOwner, conversation: string, now: number): Promise<ConversationLink[]>
  /** False: there is none. */
  remove(owner: ConversationOwner, conversation: string, id: string): Promise<boolean>
  /** Undefined: the link was removed, or the organization is suspended; null: its conversation was deleted. */
  find(id: string): Promise<LinkedConversation | null | undefined>
  /** The same, with only those messages of the branch whose details contain the text, the last first. */
  findWith(id: string, text: string): Promise<LinkedConversation | null | undefined>
}

/** What of a conversation its owner chooses. */
export interface ConversationFields {
  title: string
  /** Null: in no folder. */
  folder: string | null
  /** The system prompt; may be empty. */
  system: string
  /** Parameters of the requests, as JSON text of an object. */
  parameters: string
  /** The last message of the branch that is shown; null: none. */
  currentMessage: string | null
}

/** A message of a conversation. Messages with the same parent are branches. */
export interface ConversationMessage {
  /** Unique in its conversation; its author chooses it. */
  id: string
  /** The message that it follows; null: it begins the conversation. */
  parent: string | null
  text: string
  /** What else it has, as JSON text of an object. */
  details: string
}

/** Whose conversations: of a user, or of a token without one. Nobody else in the organization can read them. */
export interface ConversationOwner {
  organizationId: string
  /** Id of the user, or of the first token of the rotations of a token. */
  owner: string
}

/** A conversation without its messages. */
export interface ConversationRecord extends ConversationOwner, ConversationFields {
  id: string
  /** Grows with each change. */
  revision: number
  /** How many messages it has. */
  messages: number
  /** Epoch milliseconds. */
  createdAt: number
  updatedAt: number
}

export interface NewConversation extends ConversationOwner, ConversationFields {
  id: string
  messages: readonly ConversationMessage[]
  createdAt: number
}

/** Absent fields stay. Another folder alone leaves `updatedAt`, and with it the order. A message that is there already gets the new text and details; its parent stays. */
export interface ConversationChange extends Partial<ConversationFields> {
  messages: readonly ConversationMessage[]
  at: number
  /** The revision that the change was made of; absent: any. */
  revision?: number
}

/** The most that an owner and a conversation may have. Lengths are in characters, and include the details of messages. */
export const conversationLimits = { perOwner: 5_000, messages: 2_000, length: 1_000_000 }

/** Conversations that are kept for people. Every method sees only those of the owner. */
export interface ConversationStore {
  /**
   * Rejects with Failure `storage_full`, `payload_too_large` (too many or too long messages) and `invalid_value` (a parent or
   * current message that does not exist).
   */
  create(conversation: NewConversation): Promise<ConversationRecord>
  /** Undefined: there is none. Rejects as `create` does, and with `version_conflict` if it has another revision. */
  update(owner: ConversationOwner, id: string, change: ConversationChange): Promise<ConversationRecord | undefined>
  /** False: there is none. */
  remove(owner: ConversationOwner, id: string): Promise<boolean>
  find(owner: ConversationOwner, id: string): Promise<ConversationRecord | undefined>
  /** The messages in the order in which they were added, parents first. */
  messages(owner: ConversationOwner, id: string): Promise<ConversationMessage[]>
  /** The ones changed last come first; `after` is the id of the last one of the page before. */
  list(
    owner: ConversationOwner,
    page: {
      limit: number
      after?: string | undefined
      /** Only those in this folder; null: only those in none. */
      folder?: string | null | undefined
    },
  ): Promise<ConversationRecord[]>
  /** Some of the texts, from the message number `from`; `next` is where to go on, null at the end. */
  texts(owner: ConversationOwner, id: string, from: number): Promise<{ texts: string[]; next: number | null }>
  /** The names of the owner's folders, sorted. */
  folders(owner: ConversationOwner): Promise<string[]>
  /**
   * Moves all conversations of a folder to another one, or to none. Returns how many. It is no change of what they are: their
   * order stays.
   */
  moveFolder(owner: ConversationOwner, folder: string, to: string | null): Promise<number>
}

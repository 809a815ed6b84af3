import type { Schema } from '../../../api/schema.ts'
import type { TreeMessage } from '../conversation/tree.ts'

/** Where conversations are kept: on the server, where the organization stores content, or in this browser. */
export type Place = 'server' | 'browser'

/** Where a conversation is kept, by its id. */
export const placeOf = (id: string): Place => (id.startsWith('conv_') ? 'server' : 'browser')

/** The folder of presets on the server. */
export const presetFolder = 'Presets'

/** Whether a conversation of the server is a preset: it has no messages and is in the folder of presets. */
export const isPreset = ({ folder, message_count }: Pick<Schema<'Conversation'>, 'folder' | 'message_count'>) =>
  folder === presetFolder && message_count === 0

/** A conversation in the list. */
export interface ListedConversation {
  id: string
  place: Place
  title: string
  /** Null: in none. */
  folder: string | null
  /** Unix seconds of the last change. */
  at: number
}

/** A conversation without the place where it is kept. */
export interface Conversation {
  title: string
  /** Null: in none. */
  folder: string | null
  /** System prompt; may be empty. */
  system: string
  /** Fields of the requests beside the messages. */
  parameters: Readonly<Record<string, unknown>>
  messages: readonly TreeMessage[]
  /** The last message of the branch that is shown; null for none. */
  current: string | null
}

export const emptyConversation: Conversation = {
  title: '',
  folder: null,
  system: '',
  parameters: {},
  messages: [],
  current: null,
}

/** What has changed; `messages` are added, or replace those with the same ids. */
export type ConversationChange = Partial<Conversation>

/** What keeps conversations. Each method rejects with an error whose message is shown as it is. */
export interface ConversationStore {
  read: (id: string) => Promise<Conversation>
  /** Resolves with the id and the title, which is made of the first message if there is none. */
  create: (conversation: Conversation) => Promise<{ id: string; title: string }>
  update: (id: string, change: ConversationChange) => Promise<void>
  remove: (id: string) => Promise<void>
}

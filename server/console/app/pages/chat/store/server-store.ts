import { api, at, dataOf, type Schema } from '../../../api/client.ts'
import type { TreeMessage } from '../conversation/tree.ts'
import {
  type Conversation,
  type ConversationChange,
  type ConversationStore,
  type ListedConversation,
  presetFolder,
} from './stored.ts'

type ApiMessage = Schema<'ConversationMessage'>

/** Characters of a failure that the server keeps. */
const maxFailure = 2_000

export const serverStore: ConversationStore = {
  read: async id => conversationOf(await dataOf(api.GET('/api/conversations/{id}', at({ id })))),
  create: async conversation => {
    const folder = conversation.messages.length === 0 ? presetFolder : conversation.folder
    return await dataOf(api.POST('/api/conversations', { body: { ...apiChange(conversation), folder } }))
  },
  update: async (id, change) => {
    await api.PATCH('/api/conversations/{id}', { ...at({ id }), body: apiChange(change) })
  },
  remove: async id => {
    await api.DELETE('/api/conversations/{id}', at({ id }))
  },
}

/** An entry of the list of the server. */
export const listedOf = ({ id, title, folder, updated_at }: Schema<'Conversation'>): ListedConversation => ({
  id,
  title,
  folder,
  place: 'server',
  at: updated_at,
})

function conversationOf({
  title,
  folder,
  system,
  parameters,
  current_id,
  messages,
}: Schema<'ConversationWithMessages'>): Conversation {
  return { title, folder, system, parameters, current: current_id, messages: messages.map(messageOf) }
}

function messageOf({ parent_id, tool_calls, tool_call_id, created_at = 0, figures, ...same }: ApiMessage): TreeMessage {
  return {
    ...same,
    parent: parent_id,
    toolCalls: tool_calls,
    toolCallId: tool_call_id,
    figures: figures && { totalMs: 0, ...figures },
    at: created_at,
  }
}

/** Returns what has changed in the form of the API. Without a title the server makes one. */
export const apiChange = ({ title, current, messages, ...same }: ConversationChange) => ({
  ...same,
  ...(title ? { title } : {}),
  ...(current === undefined ? {} : { current_id: current }),
  ...(messages === undefined ? {} : { messages: messages.map(apiMessageOf) }),
})

/** Fields without a value are not sent, and a currency is that of the model. */
function apiMessageOf({
  parent,
  files,
  toolCalls,
  toolCallId,
  at: createdAt,
  figures,
  failure,
  reasoning,
  ...more
}: TreeMessage): ApiMessage {
  const { currency: _, ...same } = more
  return {
    ...same,
    parent_id: parent,
    files: files && [...files],
    tool_calls: toolCalls && [...toolCalls],
    tool_call_id: toolCallId,
    failure: failure?.slice(0, maxFailure),
    reasoning: reasoning || undefined,
    figures: figures && (JSON.parse(JSON.stringify(figures)) as Record<string, number>),
    created_at: createdAt,
  }
}

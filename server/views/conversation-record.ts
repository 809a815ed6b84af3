import { z } from 'zod'
import {
  anyObject,
  array,
  boolean,
  integer,
  namedObject,
  nullableString,
  optional,
  optionalStringUpTo,
  strictObject,
  string,
} from '../../core/schemas/fields.ts'
import type { ConversationMessage, ConversationRecord } from '../../core/store/store.ts'
import { pageFields } from '../http/answer/page.ts'
import { viewOf } from './view-of.ts'

const messageId = () => z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'Use 1 to 64 letters, digits, "-" and "_".')
/** Characters of a text and of all parameters. */
const maxText = 500_000
const maxParameters = 20_000

const ToolCall = strictObject('ConversationToolCall', 'A call of a tool by the model.', {
  id: z.string().max(200).describe('Id of the call, which its result names.'),
  name: z.string().max(200).describe('Name of the tool.'),
  arguments: z.string().max(100_000).describe('Arguments as JSON text.'),
})

const File = strictObject('ConversationFile', 'A file of a message.', {
  id: z.string().min(1).max(2_048).describe('Id of the file (`file-…`), or the address of an image.'),
  kind: z.enum(['image', 'audio', 'text']).describe('How a model gets it.'),
  name: z.string().max(255).describe('Name of the file; may be empty.'),
})

const Message = strictObject('ConversationMessage', 'A message of a conversation.', {
  id: messageId().describe('Id that the author chooses, unique in the conversation.'),
  parent_id: messageId().nullable().describe('The message that it follows; null for the first one.'),
  role: z.enum(['user', 'assistant', 'tool']).describe('Who wrote it.'),
  text: z.string().max(maxText).describe('The text; may be empty.'),
  model: optionalStringUpTo(256, 'Of an answer: id of the model.'),
  reasoning: optionalStringUpTo(maxText, 'Of an answer: what the model wrote before it.'),
  files: optional(z.array(File).max(20), 'Images, audio and text files, which stay files of the organization.'),
  tool_calls: optional(z.array(ToolCall).max(128), 'Of an answer: tools that the model calls.'),
  tool_call_id: optionalStringUpTo(200, 'Of the result of a tool: id of the call.'),
  failure: optionalStringUpTo(2_000, 'Why an answer is incomplete.'),
  stopped: optional(z.literal(true), 'Present if the answer was stopped.'),
  figures: optional(
    z.record(z.string().max(40), z.number()).refine(figures => Object.keys(figures).length <= 20, 'At most 20.'),
    'What an answer took, such as its tokens: numbers by names that the author chooses.',
  ),
  created_at: optional(z.int().min(0), 'Unix seconds.'),
})

const fields = {
  title: z.string().max(200).describe('The title.'),
  folder: z.string().trim().min(1).max(100).nullable().describe('Name of the folder; null for none.'),
  system: z.string().max(100_000).describe('System prompt; may be empty.'),
  parameters: anyObject('Parameters of the requests, such as the temperature.').refine(
    value => JSON.stringify(value).length <= maxParameters,
    `At most ${maxParameters} characters as JSON.`,
  ),
  current_id: messageId().nullable().describe('The last message of the branch that is shown; null for none.'),
}
const messages = z.array(Message).max(2_000)

export const ConversationCreate = strictObject('ConversationCreate', 'A conversation to keep.', {
  title: fields.title.optional(),
  folder: fields.folder.default(null),
  system: fields.system.default(''),
  parameters: fields.parameters.default({}),
  current_id: fields.current_id.default(null),
  messages: messages.default([]).describe('Its messages, each after the one that it follows.'),
})

export const ConversationUpdate = strictObject(
  'ConversationUpdate',
  'Fields of a conversation to change. Absent fields stay.',
  {
    title: fields.title.optional(),
    folder: fields.folder.optional(),
    system: fields.system.optional(),
    parameters: fields.parameters.optional(),
    current_id: fields.current_id.optional(),
    messages: optional(messages, 'Messages to add, each after the one that it follows, or to replace by their ids.'),
    revision: optional(z.int().min(1), 'The revision that was changed. Default: the change is made in any case.'),
  },
)

export const ConversationFolderUpdate = strictObject(
  'ConversationFolderUpdate',
  'Another name for a folder of conversations, or its end.',
  {
    folder: z.string().min(1).max(100).describe('The name that it has.'),
    to: fields.folder.describe(
      'Its new name. If there is a folder of this name, the conversations join those in it. null: they are in no folder.',
    ),
  },
)
export const ConversationFolderUpdated = namedObject('ConversationFolderUpdated', 'Confirms the change of a folder.', {
  moved: integer('How many conversations were in it.'),
})

const shown = {
  id: string('Id of the conversation: `conv_…`.'),
  object: z.literal('conversation'),
  title: string('The title.'),
  folder: nullableString('Name of the folder; null for none.'),
  revision: integer('Grows with each change.'),
  message_count: integer('How many messages it has.'),
  created_at: integer('Unix seconds.'),
  updated_at: integer('Unix seconds of the last change, other than of the folder.'),
}
export const Conversation = namedObject('Conversation', 'A conversation without its messages.', shown)

export const ConversationWithMessages = namedObject('ConversationWithMessages', 'A conversation with its messages.', {
  ...shown,
  system: string('System prompt; may be empty.'),
  parameters: anyObject('Parameters of the requests.'),
  current_id: nullableString('The last message of the branch that is shown; null for none.'),
  messages: array('All messages of all branches, each after the one that it follows.', Message),
})

export const ConversationPage = namedObject('ConversationPage', 'A page of conversations.', {
  conversations: array('The conversations, those changed last first.', Conversation),
  folders: array('Names of all folders of the owner.', z.string()),
  stored: boolean('Whether conversations can be created: the organization stores content of calls.'),
  ...pageFields,
})

const messageOf = ({ id, parent_id: parent, text, ...details }: z.output<typeof Message>): ConversationMessage => ({
  id,
  parent,
  text,
  details: JSON.stringify(details),
})

/** Converts a conversation of a request to that of the store. */
export const fieldsOf = ({ current_id, parameters, messages, ...more }: z.output<typeof ConversationCreate>) => ({
  ...more,
  parameters: JSON.stringify(parameters),
  currentMessage: current_id,
  messages: messages.map(messageOf),
})

/** Converts a change of a request to that of the store. */
export const changeOf = ({ current_id, parameters, messages = [], ...more }: z.output<typeof ConversationUpdate>) => ({
  ...more,
  parameters: parameters && JSON.stringify(parameters),
  currentMessage: current_id,
  messages: messages.map(messageOf),
})

export const conversationView = (record: ConversationRecord): z.input<typeof Conversation> =>
  viewOf(Conversation, record, { message_count: record.messages })

/**
 * Returns a conversation with its messages as JSON text. Their details are text already: parsing and writing those of a long
 * conversation again would block the event loop.
 */
export function conversationText(record: ConversationRecord, messages: readonly ConversationMessage[]): string {
  const { system, parameters, currentMessage } = record
  const listed = messages.map(
    ({ id, parent, text, details }) =>
      `${JSON.stringify({ id, parent_id: parent, text }).slice(0, -1)},${details.slice(1)}`,
  )
  const begin = JSON.stringify({ ...conversationView(record), system, current_id: currentMessage }).slice(0, -1)
  return `${begin},"parameters":${parameters},"messages":[${listed.join(',')}]}`
}

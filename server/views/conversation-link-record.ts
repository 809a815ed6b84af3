import { z } from 'zod'
import { linkLifetimes, type SharedConversation } from '../../core/conversations/conversation-links.ts'
import {
  array,
  integer,
  namedObject,
  nullableString,
  object,
  oneOf,
  strictObject,
  string,
} from '../../core/schemas/fields.ts'
import type { ConversationLink as LinkRecord } from '../../core/store/store.ts'
import { deletedObject } from '../http/answer/page.ts'
import { seconds, viewOf } from './view-of.ts'

export const ConversationLinkCreate = strictObject('ConversationLinkCreate', 'A link to create.', {
  expires_in: z
    .int()
    .min(linkLifetimes.least)
    .max(linkLifetimes.most)
    .default(7 * 86_400)
    .describe('Seconds until the link expires: an hour to 30 days.'),
})

export const ConversationLink = namedObject('ConversationLink', 'A link with which anybody reads a conversation.', {
  id: string('Id of the link: `link_…`.'),
  object: z.literal('conversation_link'),
  url: string('The address of the page. Whoever has it can read.'),
  created_at: integer('Unix seconds.'),
  expires_at: integer('Unix seconds at which it expires.'),
})

export const ConversationLinks = namedObject('ConversationLinks', 'The links of a conversation.', {
  links: array('The links that have not expired, the newest first.', ConversationLink),
})

export const ConversationLinkDeleted = deletedObject(
  'ConversationLinkDeleted',
  'Confirms that a link was revoked.',
  ['conversation_link', 'link'],
  {},
)

export const SharedConversationView = namedObject('SharedConversation', 'A conversation as its link shows it.', {
  title: string('The title.'),
  expires_at: integer('Unix seconds at which the link expires.'),
  messages: array(
    'What people and models have said, in order.',
    object('A message.', {
      role: oneOf('Who wrote it.', ['user', 'assistant']),
      text: string('The text; may be empty.'),
      model: nullableString('Of an answer: id of the model.'),
      files: array(
        'Its files.',
        object('A file.', {
          kind: oneOf('What it is.', ['image', 'audio', 'text']),
          name: string('Its name; may be empty.'),
          url: nullableString('Where an image can be read, without the origin; null for other files.'),
        }),
      ),
    }),
  ),
})

export const linkView = (link: LinkRecord, url: string): z.input<typeof ConversationLink> =>
  viewOf(ConversationLink, link, { url })

/** `path`: that of the link, without a slash at its end. */
export const sharedView = (
  { title, expiresAt, messages }: SharedConversation,
  path: string,
): z.input<typeof SharedConversationView> => ({
  title,
  expires_at: seconds(expiresAt),
  messages: messages.map(({ files, ...message }) => ({
    ...message,
    files: files.map(({ id, kind, name }) => ({
      kind,
      name,
      url: kind === 'image' && id.startsWith('file-') ? `${path}/files/${id}` : null,
    })),
  })),
})

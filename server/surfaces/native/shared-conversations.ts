import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { isUnavailable } from '../../../core/files/api-files.ts'
import { string } from '../../../core/schemas/fields.ts'
import { sendFile } from '../../http/answer/send-file.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { wrongAddress } from '../../http/request/wrong-address.ts'
import { SharedConversationView, sharedView } from '../../views/conversation-link-record.ts'

const route = routeOf({ tag: 'Conversations' })
const base = '/shared/:token'
const Link = z.object({ token: string('The token of the link, which is the right to read.') })
const errorCodes = ['not_found', 'output_expired', 'rate_limit'] as const
const wrong = 'There is no such link. Check that the whole address was copied.'

type SharedOwners = Owners<'config' | 'conversations' | 'files' | 'linkReads' | 'log' | 'wrongTokens'>

/** The routes behind a link to a conversation. They need no token: the link is the right to read. */
export function sharedConversationRoutes(owners: SharedOwners) {
  const { config, conversations, files, linkReads } = owners

  /**
   * Counts a request, and returns what `read` finds for its token. Throws Failure `rate_limit` for too many, `not_found` for a wrong
   * token, and `output_expired` for a link that shows nothing more.
   */
  async function counted<Found>(exchange: ClientExchange, read: (token: string) => Promise<Found | undefined>) {
    const waitMs = linkReads.blockedFor(exchange.clientAddress)
    if (waitMs > 0) throw tooFast(config.limits.link_reads_per_minute, waitMs)
    linkReads.count(exchange.clientAddress)
    const found = await read(exchange.params.token ?? '')
    if (found === undefined) throw wrongAddress(exchange, wrong, owners)
    return found
  }

  /** Sends an image that a message of the conversation names. */
  async function sendImage(exchange: ClientExchange): Promise<void> {
    const { file: id = '' } = exchange.params
    const organizationId = await counted(exchange, token => conversations.links.ownerOfImage(token, id))
    const file = organizationId === null ? undefined : await files.find(organizationId, id)
    if (!file?.contentType.startsWith('image/'))
      throw new Failure('not_found', `The conversation has no image '${id.slice(0, 64)}'.`)
    if (isUnavailable(file)) throw new Failure('output_expired', 'The image was deleted, or its retention is over.')
    // A revoked link must show nothing, so no cache keeps its images.
    await sendFile(exchange, file, { kind: 'inline', maxAge: 0, more: ['referrer-policy', 'no-referrer'] }, owners)
  }

  return [
    route(`GET ${base}/conversation`, 'public', {
      summary: 'Get shared conversation',
      description: 'Returns what the page of a link shows.',
      errorCodes,
      params: Link,
      response: SharedConversationView,
      handle: async ({ params: { token } }, exchange) => {
        exchange.header('cache-control', 'no-store')
        return sharedView(await counted(exchange, token => conversations.links.open(token)), `/shared/${token}`)
      },
    }),
    route(`GET ${base}/files/:file`, 'public', {
      summary: 'Get image of shared conversation',
      description: 'Returns an image that a message of the conversation has.',
      media: ['image/*'],
      errorCodes,
      params: Link.extend({ file: string('Id of the file: `file-…`.') }),
      answer: sendImage,
    }),
  ]
}

const tooFast = (perMinute: number, waitMs: number) =>
  new Failure(
    'rate_limit',
    `Shared conversations may be read ${perMinute} times a minute from one address. Wait ${Math.ceil(waitMs / 1000)} s.`,
    { retryAfterMs: waitMs },
  )

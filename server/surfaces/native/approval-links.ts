import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { namedObject, string } from '../../../core/schemas/fields.ts'
import { type EventRequest, maxCommentLength, maxEventBytes } from '../../../core/schemas/waits.ts'
import type { Wait } from '../../../core/store/waits.ts'
import { readBody } from '../../http/body/body.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { wrongAddress } from '../../http/request/wrong-address.ts'
import { shownQuestion } from '../../views/approval-record.ts'
import { formValues, noticePage, pageHeaders, questionPage } from './approval-page.ts'

const route = routeOf({ tag: 'Workflow executions' })
const params = z.object({ token: string('The token of the address, which is the right to answer.') })

/** Bytes of what a page sends. */
const maxFormBytes = 262_144

type LinkOwners = Owners<'config' | 'cpu' | 'files' | 'waits' | 'webhooks' | 'wrongTokens'>

const gone = 'This address works no more: the question was answered, or its time is over.'

/**
 * Finds the open wait of the address. Throws Failure `not_found`, the same for every address that is of no open wait, and
 * `rate_limit` for a client that keeps sending such.
 */
async function waitOf(exchange: ClientExchange, awaits: Wait['awaits'], owners: LinkOwners): Promise<Wait> {
  const wait = await owners.waits.withToken(exchange.params.token ?? '')
  if (wait?.awaits === awaits && owners.waits.tokenOf(wait) !== null) return wait
  throw wrongAddress(exchange, gone, owners)
}

/** Answers with a page, also where the work fails because of what the reader did or because it is too late. */
async function answerPage(exchange: ClientExchange, work: (nonce: string) => Promise<[status: number, html: string]>) {
  const nonce = randomBytes(16).toString('base64')
  const [status, html] = await work(nonce).catch((thrown: unknown): [number, string] => {
    const failure = Failure.from(thrown)
    if (failure.status >= 500) throw thrown
    return [
      failure.status,
      noticePage(failure.status === 404 ? 'Not open' : 'That did not work', failure.message, nonce),
    ]
  })
  exchange.send(status, html, 'text/html; charset=utf-8', pageHeaders(nonce))
}

async function showQuestion(exchange: ClientExchange, owners: LinkOwners): Promise<void> {
  await answerPage(exchange, async nonce => {
    const wait = await waitOf(exchange, 'approval', owners)
    return [200, questionPage(shownQuestion(wait, exchange, owners), nonce)]
  })
}

async function takeAnswer(exchange: ClientExchange, owners: LinkOwners): Promise<void> {
  await answerPage(exchange, async nonce => {
    const wait = await waitOf(exchange, 'approval', owners)
    const body = await readBody(exchange.req, maxFormBytes, { type: 'form' })
    const sent = new URLSearchParams(body.toString('utf8'))
    const question = shownQuestion(wait, exchange, owners)
    const decision = sent.get('decision')
    if (decision !== 'approve' && decision !== 'reject') return [400, questionPage(question, nonce, { sent })]
    const approved = decision === 'approve'
    const comment = sent.get('comment')?.trim().slice(0, maxCommentLength)
    const answer = question.form && approved ? { answer: formValues(question.form, sent) } : {}
    try {
      await owners.waits.decide(
        wait,
        { approved, ...answer, ...(comment ? { comment } : {}) },
        { type: 'link', name: null },
      )
    } catch (thrown) {
      const { code, message } = Failure.from(thrown)
      if (code === 'invalid_value') return [400, questionPage(question, nonce, { fault: message, sent })]
      if (code !== 'conflict') throw thrown
      return [409, noticePage('Not open', gone, nonce)]
    }
    const done = approved ? 'You have approved it.' : 'You have rejected it.'
    return [200, noticePage('Thank you', `${done} The workflow goes on. You can close this page.`, nonce)]
  })
}

const Received = namedObject('EventReceived', 'Confirms that an event has arrived.', { received: z.literal(true) })

async function takeEvent(exchange: ClientExchange, owners: LinkOwners) {
  const wait = await waitOf(exchange, 'event', owners)
  const body = await readBody(exchange.req, maxEventBytes)
  const { signed = false } = JSON.parse(wait.request) as EventRequest
  const isSigned = exchange.req.headers['webhook-signature'] !== undefined
  if ((signed || isSigned) && !(await owners.webhooks.isSigned(wait.organizationId, exchange.req.headers, body)))
    throw new Failure(
      'invalid_signature',
      'The event must be signed with the webhook secret of the organization (Standard Webhooks), within the last five minutes.',
    )
  const { value = null } =
    body.length === 0 ? {} : await owners.cpu.readBody(body, owners.config.limits, { hash: false, files: false })
  await owners.waits.arrive(wait, value)
}

/** The routes of nodes that wait for whoever has their address. They need no token: the address is the right to answer. */
export const approvalLinkRoutes = (owners: LinkOwners) => [
  route('GET /approvals/:token', 'public', {
    params,
    summary: 'Get approval page',
    description:
      'Shows the page of an approval to whoever has its address. Once it is answered the address works no more.',
    media: ['text/html'],
    errorCodes: ['not_found', 'rate_limit'],
    answer: exchange => showQuestion(exchange, owners),
  }),
  route('POST /approvals/:token', 'public', {
    bucket: 'api',
    params,
    summary: 'Answer approval',
    description: 'Takes the form of the page. Of two answers the first counts.',
    rawBody: 'application/x-www-form-urlencoded',
    media: ['text/html'],
    errorCodes: ['not_found', 'conflict', 'invalid_value', 'payload_too_large', 'unsupported_media_type', 'rate_limit'],
    answer: exchange => takeAnswer(exchange, owners),
  }),
  route('POST /events/:token', 'public', {
    bucket: 'api',
    params,
    summary: 'Send event to node',
    description:
      'Ends the wait of a `wait/event` node: the JSON of the body, at most 256 kB, becomes its result. A signature by the webhook secret of the organization is checked if there is one, and required if the node says so. The first event counts.',
    body: z.unknown().meta({ id: 'NodeEvent', description: 'The event: any JSON.' }),
    example: { paid: true },
    errorCodes: [
      'not_found',
      'conflict',
      'invalid_signature',
      'payload_too_large',
      'unsupported_media_type',
      'rate_limit',
    ],
    response: Received,
    async answer(exchange) {
      await takeEvent(exchange, owners)
      exchange.send(200, JSON.stringify({ received: true }))
    },
  }),
]

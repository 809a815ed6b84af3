import { z } from 'zod'
import { invalid } from '../../core/failure.ts'
import { boundedJsonOf, objectOf } from '../../core/json.ts'
import { nullish } from '../../core/schemas/fields.ts'
import { publicEventTypes } from '../../core/store/event-types.ts'
import type { RequestWebhook } from '../../core/store/store.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Owners } from '../http/request/owners.ts'
import type { JobTerms } from './submit.ts'

/** The types of events that a webhook of a request can have, and those that it has by default. */
export interface WebhookTypes {
  all: readonly string[]
  usual: readonly string[]
}

export const jobWebhookTypes: WebhookTypes = {
  all: publicEventTypes.filter(type => type.startsWith('job.')),
  usual: ['job.completed', 'job.failed', 'job.cancelled'],
}
export const executionWebhookTypes: WebhookTypes = {
  all: publicEventTypes.filter(type => type.startsWith('workflow_execution.')),
  usual: ['completed', 'failed', 'cancelled', 'timed_out'].map(end => `workflow_execution.${end}`),
}

const priorities = { low: -10, normal: 0, high: 10 } as const
export const Priority = z.union([z.int().min(-100).max(100), z.enum(['low', 'normal', 'high'])]).default(0)
export const priorityOf = (given: z.output<typeof Priority>): number =>
  typeof given === 'string' ? priorities[given] : given

/** The caller's own key-value pairs. */
export const Metadata = z.record(z.string().max(64), z.string().max(512))

/** The fields with which a body sets the webhook of its job or execution. */
export const webhookFields = (usual: string) => ({
  webhook_url: nullish(
    z.string(),
    'URL to which events are sent as signed messages: http or https, at a public address. The secret is at `GET /api/organizations/{id}/webhook-secret`.',
  ),
  webhook_events: nullish(
    z.array(z.string().max(64)).min(1).max(32),
    `Types of events to send, also as patterns such as \`job.*\`. Default: ${usual}.`,
  ),
})

/** Returns the webhook of a body; undefined without one. Throws Failure `invalid_value` that names the field. */
export function webhookInBody(
  {
    webhook_url,
    webhook_events,
  }: { webhook_url?: string | null | undefined; webhook_events?: string[] | null | undefined },
  { origin }: Pick<ClientExchange, 'origin'>,
  { all, usual }: WebhookTypes,
  { webhooks }: Owners<'webhooks'>,
): RequestWebhook | undefined {
  if (webhook_url == null) {
    if (webhook_events == null) return undefined
    throw invalid('webhook_events', "'webhook_events' needs 'webhook_url'. Send both, or neither.")
  }
  const webhook: RequestWebhook = {
    url: webhook_url,
    eventTypes: webhook_events ?? [...usual],
    form: 'standard',
    origin,
  }
  return webhooks.ofRequest(webhook, { url: 'webhook_url', eventTypes: 'webhook_events', types: all })
}

/**
 * Returns the webhook in the query or a header of a request, where the body has the inputs of the model only; undefined
 * without one. Throws Failure `invalid_value` that names the parameter, also if there are two.
 */
function webhookInQuery(exchange: ClientExchange, { webhooks }: Owners<'webhooks'>) {
  const header = exchange.req.headers['x-webhook-url']
  const { query } = exchange
  const given = [
    ['webhook_url', query.get('webhook_url'), 'standard'],
    ['fal_webhook', query.get('fal_webhook'), 'fal'],
    ['X-Webhook-Url', typeof header === 'string' ? header : null, 'standard'],
  ] as const
  const [first, second] = given.filter(([, url]) => url !== null && url !== '')
  if (!first) return undefined
  if (second) throw invalid(second[0], `'${first[0]}' and '${second[0]}' both name a webhook. Send one of them.`)
  const [field, url, form] = first
  const webhook: RequestWebhook = { url: url!, eventTypes: [...jobWebhookTypes.usual], form, origin: exchange.origin }
  return webhooks.ofRequest(webhook, { url: field, eventTypes: field, types: jobWebhookTypes.all })
}

export const aWeek = 7 * 86_400
export const tenYears = 3_650 * 86_400

const invalidHeader = (header: string, message: string) => invalid(header, `'${header}' ${message}`)

/** Parses a header with a number of seconds. */
function secondsIn(header: string, text: unknown, maxSeconds: number) {
  const seconds = typeof text === 'string' && /^\s*\d{1,9}(\.\d{1,6})?\s*$/.test(text) ? Number(text) : text
  if (typeof seconds !== 'number' || !(seconds > 0) || seconds > maxSeconds)
    throw invalidHeader(header, `must be a number of seconds of at most ${maxSeconds}.`)
  return seconds
}

/** Returns the number of seconds in a header of fal that sets how long something is kept; undefined if it sets none. */
export function lifetimeIn(header: string, given: string): unknown {
  const preference = boundedJsonOf(given)
  if (preference === undefined)
    throw invalidHeader(header, 'must be JSON such as {"expiration_duration_seconds":3600}.')
  return objectOf(preference).expiration_duration_seconds ?? undefined
}

function lifetimeOf(given: string) {
  const header = 'X-Fal-Object-Lifecycle-Preference'
  const seconds = lifetimeIn(header, given)
  return seconds === undefined ? undefined : Math.ceil(secondsIn(header, seconds, tenYears) * 1000)
}

/**
 * Returns the start timeout, priority, retention and webhook of a request. They are headers and query parameters, so that
 * the body has only inputs of the model. Throws Failure `invalid_value`.
 */
export function jobTermsOf(exchange: ClientExchange, owners: Owners<'webhooks'>): JobTerms {
  const { headers } = exchange.req
  const timeout = headers['x-fal-request-timeout']
  const priority = headers['x-fal-queue-priority']
  const lifetime = headers['x-fal-object-lifecycle-preference']
  if (priority !== undefined && priority !== 'low' && priority !== 'normal')
    throw invalidHeader('X-Fal-Queue-Priority', 'must be one of: low, normal.')
  return {
    priority: priority === 'low' ? -10 : 0,
    startTimeoutMs:
      timeout === undefined ? undefined : Math.ceil(secondsIn('X-Fal-Request-Timeout', timeout, aWeek) * 1000),
    webhook: webhookInQuery(exchange, owners),
    retentionMs: typeof lifetime === 'string' ? lifetimeOf(lifetime) : undefined,
  }
}

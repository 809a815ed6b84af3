import { z } from 'zod'
import { invalidValue } from '../../core/invalid-value.ts'
import { publicEventTypes } from '../../core/store/event-types.ts'
import type { RequestWebhook } from '../../core/store/store.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'

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

/** The fields with which a body sets the webhook of its job or execution. */
export const webhookFields = (usual: string) => ({
  webhook_url: z
    .string()
    .nullish()
    .describe(
      'URL to which events are sent as signed messages: http or https, at a public address. The secret is at `GET /api/organizations/{id}/webhook-secret`.',
    ),
  webhook_events: z
    .array(z.string().max(64))
    .min(1)
    .max(32)
    .nullish()
    .describe(`Types of events to send, also as patterns such as \`job.*\`. Default: ${usual}.`),
})

/** Returns the webhook of a body; undefined without one. Throws Failure `invalid_value` that names the field. */
export function webhookInBody(
  {
    webhook_url,
    webhook_events,
  }: { webhook_url?: string | null | undefined; webhook_events?: string[] | null | undefined },
  { origin }: Pick<Call, 'origin'>,
  { all, usual }: WebhookTypes,
  { webhooks }: Pick<Owners, 'webhooks'>,
): RequestWebhook | undefined {
  if (webhook_url == null) {
    if (webhook_events == null) return undefined
    throw invalidValue('webhook_events', "'webhook_events' needs 'webhook_url'. Send both, or neither.")
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
export function webhookInQuery(call: Call, { webhooks }: Pick<Owners, 'webhooks'>): RequestWebhook | undefined {
  const header = call.req.headers['x-webhook-url']
  const { query } = call
  const given = [
    ['webhook_url', query.get('webhook_url'), 'standard'],
    ['fal_webhook', query.get('fal_webhook'), 'fal'],
    ['X-Webhook-Url', typeof header === 'string' ? header : null, 'standard'],
  ] as const
  const [first, second] = given.filter(([, url]) => url !== null && url !== '')
  if (!first) return undefined
  if (second) throw invalidValue(second[0], `'${first[0]}' and '${second[0]}' both name a webhook. Send one of them.`)
  const [field, url, form] = first
  const webhook: RequestWebhook = { url: url!, eventTypes: [...jobWebhookTypes.usual], form, origin: call.origin }
  return webhooks.ofRequest(webhook, { url: field, eventTypes: field, types: jobWebhookTypes.all })
}

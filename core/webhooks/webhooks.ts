import type { IncomingHttpHeaders } from 'node:http'
import type { Keys } from '../accounts/keys.ts'
import { newId, queueIdOf } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Resolve } from '../media/checked-url.ts'
import type { Config } from '../models/config.ts'
import type { DueDelivery, NewDelivery, RequestWebhook, Store, WebhookEndpoint } from '../store/store.ts'
import { openDeliveries } from './deliveries.ts'
import { openEndpoints, requireEventTypes, requireUrl, webhookRules } from './endpoints.ts'
import { messageText } from './message.ts'
import { type AttemptReply, decide } from './retry.ts'
import { openSender } from './sender.ts'
import { activeSecrets, falHeaders, isSignedBy, publicJwk, standardHeaders } from './signature.ts'

export interface WebhooksOptions {
  store: Pick<Store, 'webhooks' | 'onCommitted'>
  keys: Pick<Keys, 'webhooks' | 'webhookSigning'>
  config: Config['webhooks']
  /** Makes the body of a delivery: the whole message. */
  render: (delivery: NewDelivery) => Promise<string>
  log: Log
  clock?: { now(): number }
  resolve?: Resolve
}

/** Signs and sends messages: the half of webhooks that needs no server. */
export function openMessages(options: Pick<WebhooksOptions, 'keys' | 'config' | 'clock' | 'resolve'>) {
  const { keys, config, clock = { now: Date.now }, resolve } = options
  const sender = openSender({
    rules: webhookRules(config),
    timeoutMs: config.timeout,
    connections: config.parallel_per_endpoint,
    ...(resolve ? { resolve } : {}),
  })

  function headersOf(delivery: Omit<DueDelivery, 'attempts' | 'number' | 'type' | 'url'>): Record<string, string> {
    const { id, organizationId, endpointId, form, object, body, secret, traceparent } = delivery
    const at = clock.now()
    const signed =
      form === 'fal'
        ? falHeaders(keys.webhookSigning, { requestId: queueIdOf(object), userId: organizationId, at, body })
        : standardHeaders(activeSecrets(keys.webhooks, endpointId ?? organizationId, secret, at), { id, at, body })
    return traceparent === null ? signed : { ...signed, traceparent }
  }

  return {
    /** Signs and sends a delivery. Never rejects. */
    send: (delivery: DueDelivery, signal: AbortSignal): Promise<AttemptReply> =>
      sender.send({ url: delivery.url, headers: headersOf(delivery), body: delivery.body }, signal),

    /**
     * Sends a message of this type to the endpoint at once, without a retry. It is not kept. Resolves with what came of
     * it; `error` is a sentence.
     */
    async test(endpoint: WebhookEndpoint, type: string, signal: AbortSignal) {
      const at = clock.now()
      const body = messageText({ id: newId('evt'), type, at, data: '{"test":true}' })
      const { id: endpointId, organizationId, secret, url } = endpoint
      const message = { id: newId('msg'), organizationId, endpointId, object: '', body, secret, traceparent: null }
      const reply = await sender.send({ url, headers: headersOf({ ...message, form: 'standard' }), body }, signal)
      const decision = decide(reply, { attempts: 1, delays: [], now: at, random: 0 })
      const { statusCode, durationMs } = reply
      const success = decision.outcome === 'delivered'
      return { success, statusCode, durationMs, error: success ? null : decision.error }
    },
    close: () => sender.close(),
  }
}

/** How many deliveries are counted at most, so that a scrape of the metrics stays cheap. */
const maxCounted = 10_000

/** Webhooks of the server: endpoints, webhooks of requests, and the loop that sends their deliveries. */
export function openWebhooks(options: WebhooksOptions) {
  const { store, keys, config, render, log, clock } = options
  const rules = webhookRules(config)
  const endpoints = openEndpoints({ store, key: keys.webhooks, rules, ...(clock ? { now: () => clock.now() } : {}) })
  const messages = openMessages(options)
  const deliveries = openDeliveries({
    store,
    render,
    send: (delivery, signal) => messages.send(delivery, signal),
    delays: config.retry_delays,
    parallel: config.parallel,
    parallelPerTarget: config.parallel_per_endpoint,
    retentionMs: config.retention,
    log,
    ...(clock ? { clock } : {}),
  })
  const woken = <T>(value: T): T => {
    deliveries.wake()
    return value
  }

  return {
    ...endpoints,
    update: async (...change: Parameters<typeof endpoints.update>) => woken(await endpoints.update(...change)),
    redeliver: async (...which: Parameters<typeof endpoints.redeliver>) => woken(await endpoints.redeliver(...which)),
    test: (endpoint: WebhookEndpoint, type: string, signal: AbortSignal) => messages.test(endpoint, type, signal),

    /**
     * Returns the webhook of a request. Throws Failure `invalid_value` that names the field, for a URL or a type that is
     * not allowed.
     */
    ofRequest(webhook: RequestWebhook, fields: { url: string; eventTypes: string; types: readonly string[] }) {
      requireUrl(webhook.url, fields.url, rules)
      requireEventTypes(webhook.eventTypes, fields.eventTypes, fields.types)
      return webhook
    },

    /** Whether a message with these headers was signed with the secret of the organization, within the last five minutes. */
    async isSigned(organizationId: string, headers: IncomingHttpHeaders, body: Uint8Array): Promise<boolean> {
      const now = (clock ?? Date).now()
      const state = await store.webhooks.secretOf(organizationId)
      return isSignedBy(activeSecrets(keys.webhooks, organizationId, state, now), { headers, body, now })
    },

    /** The public keys that verify webhooks in fal's form. */
    publicKeys: [publicJwk(keys.webhookSigning)],
    totals: deliveries.totals,
    /** Deliveries that have not ended and dead ones, each up to `maxCounted`. */
    counts: () => store.webhooks.counts(maxCounted),

    async close(): Promise<void> {
      await deliveries.close()
      await messages.close()
    },
  }
}
export type Webhooks = ReturnType<typeof openWebhooks>

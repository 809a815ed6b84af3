import type { KeyObject } from 'node:crypto'
import { Failure, invalid } from '../failure.ts'
import { newId } from '../ids.ts'
import { checkedUrl, type UrlRules, urlRules } from '../media/checked-url.ts'
import { pick } from '../members.ts'
import type { Config } from '../models/config.ts'
import { didYouMean, nearest } from '../nearest.ts'
import { coversType, publicEventTypes } from '../store/event-types.ts'
import {
  type Actor,
  type NewWebhookEndpoint,
  type SecretState,
  type Store,
  theServer,
  type WebhookEndpoint,
  type WebhookEndpointChange,
} from '../store/store.ts'
import { secretHint, secretText } from './signature.ts'

/** Characters of a URL that a webhook may have. */
export const maxUrlLength = 2_048

/** Where webhooks may be sent: to public addresses on these ports, and where the configuration allows. */
export const webhookRules = ({ allowed_hosts, allowed_addresses }: Config['webhooks']): UrlRules =>
  urlRules({ allowed_hosts, allowed_addresses }, [80, 443])

/**
 * Throws Failure `invalid_value` that names the field, if no webhook can be sent to this URL whatever its name resolves
 * to. The addresses of a name are checked with each message.
 */
export function requireUrl(url: string, field: string, rules: UrlRules): void {
  try {
    if (url.length > maxUrlLength) throw new Error('too long')
    checkedUrl(url, undefined, rules)
  } catch (cause) {
    throw new Failure(
      'invalid_value',
      `'${field}' must be an http or https URL at a public address, on port 80 or 443, without a user name, of at most ${maxUrlLength} characters. For others see 'webhooks.allowed_addresses' in infer.yaml.`,
      { param: field, cause },
    )
  }
}

/** Throws Failure `invalid_value` for a type or pattern that no event has, with the nearest one. */
export function requireEventTypes(types: readonly string[], field: string, of = publicEventTypes): void {
  const unknown = types.find(pattern => !isPattern(pattern) || !of.some(type => coversType(pattern, type)))
  if (unknown === undefined) return
  const similar = nearest(unknown, of)
  throw invalid(
    field,
    `'${field}' has '${unknown.slice(0, 64)}', which is no type of event here.${similar === undefined ? '' : didYouMean([similar])} The types are: ${of.join(', ')}. 'job.*' stands for all that begin so.`,
  )
}

const isPattern = (text: string): boolean => /^(\*|[a-z_.]+\.\*|[a-z_.]+)$/.test(text)

/** An endpoint to create. */
export type EndpointOptions = Omit<NewWebhookEndpoint, 'id' | 'createdAt'>

/** The most that the previous secret of a rotation signs beside its successor, milliseconds. */
export const maxSecretOverlapMs = 7 * 86_400_000

/**
 * The endpoints of organizations and the signing secrets. No secret is stored: each is derived from a key. The audit log
 * names who made a change (`by`) in the same transaction.
 */
export function openEndpoints(dependencies: {
  store: Pick<Store, 'webhooks'>
  key: KeyObject
  rules: UrlRules
  now?: () => number
}) {
  const { store, key, rules, now = Date.now } = dependencies
  const { webhooks } = store
  const withSecret = (endpoint: WebhookEndpoint) => ({
    endpoint,
    secret: secretText(key, endpoint.id, endpoint.secret),
  })
  const secretOf = (organizationId: string, state: SecretState) => ({
    secret: secretText(key, organizationId, state),
    state,
  })
  const untilOf = (overlapMs: number): number | null => (overlapMs === 0 ? null : now() + overlapMs)

  return {
    /** Throws Failure `invalid_value` for a URL or type that is not allowed, `conflict` for one endpoint too many. */
    async create(options: EndpointOptions, by: Actor = theServer) {
      requireUrl(options.url, 'url', rules)
      requireEventTypes(options.eventTypes, 'event_types')
      return withSecret(await webhooks.create({ ...options, id: newId('whe'), createdAt: now() }, by))
    },
    ...pick(webhooks, 'find', 'list', 'deliveries', 'delivery'),
    /** Undefined: no such endpoint. Throws as `create` does. */
    async update(organizationId: string, id: string, change: WebhookEndpointChange, by: Actor = theServer) {
      if (change.url !== undefined) requireUrl(change.url, 'url', rules)
      if (change.eventTypes !== undefined) requireEventTypes(change.eventTypes, 'event_types')
      return webhooks.update(organizationId, id, change, now(), by)
    },
    /** The previous secret signs for `overlapMs` more. Undefined: no such endpoint. */
    async rotate(organizationId: string, id: string, overlapMs: number, by: Actor = theServer) {
      const rotated = await webhooks.rotate(organizationId, id, untilOf(overlapMs), now(), by)
      return rotated && withSecret(rotated)
    },
    /** Its deliveries are removed with it. Undefined: no such endpoint. */
    remove: (organizationId: string, id: string, by: Actor = theServer) =>
      webhooks.remove(organizationId, id, now(), by),

    /** The last characters of the current secret. */
    hintOf: ({ id, secret }: Pick<WebhookEndpoint, 'id' | 'secret'>): string => secretHint(secretText(key, id, secret)),

    /** The secret that signs the webhooks of requests. */
    organizationSecret: async (organizationId: string) =>
      secretOf(organizationId, await webhooks.secretOf(organizationId)),
    rotateOrganizationSecret: async (organizationId: string, overlapMs: number, by: Actor = theServer) =>
      secretOf(organizationId, await webhooks.rotateSecret(organizationId, untilOf(overlapMs), now(), by)),

    /** Sends a delivery again, with all its attempts. Undefined: no such delivery. */
    redeliver: (organizationId: string, id: string, by: Actor = theServer) =>
      webhooks.redeliver(organizationId, id, now(), by),
    /** Records a test message before it is sent. Undefined: no such endpoint. */
    async recordTest(
      { organizationId, id }: Pick<WebhookEndpoint, 'organizationId' | 'id'>,
      type: string,
      by: Actor = theServer,
    ): Promise<true | undefined> {
      return (await webhooks.recordTest(organizationId, id, type, now(), by)) || undefined
    },
  }
}

import { Failure } from '../../core/failure.ts'
import type { DeliveryStatus } from '../../core/store/store.ts'
import type { DeliveryView, WebhookView } from '../../core/webhooks/webhook-view.ts'
import { openAccountClient, organizationFor } from '../accounts/account-client.ts'
import { allPages } from '../accounts/pages.ts'
import { type Client, dataOf } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'

export interface WebhookChange {
  name?: string | undefined
  url?: string | undefined
  event_types?: string[] | undefined
  enabled?: boolean | undefined
}

/** Deliveries are large: they have the bodies of the messages. */
const largestDeliveryPage = 50

const of = (id: string) => ({ params: { path: { id } } })
const overlap = (ms: number) => ({ overlap_seconds: Math.round(ms / 1000) })

/**
 * Manages the webhooks of an organization, by its id or name. A server knows those of its token's organization only:
 * another one is refused as usage. The token needs the scopes admin:read and admin:write.
 */
export async function openWebhookClient(client: Client, idOrName: string | undefined) {
  const organization = client.isInProcess
    ? (await organizationFor(openAccountClient(client), idOrName)).id
    : await ownOrganization(client, idOrName)
  const { api } = client.isInProcess ? client.withToken(organization) : client
  const secretPath = { params: { path: { organization } } }

  return {
    create: (body: { name: string; url: string; event_types: string[]; enabled: boolean }) =>
      dataOf(api.POST('/api/webhooks', { body })),
    /** Returns all endpoints, newest first. */
    list: (): Promise<WebhookView[]> =>
      allPages(async (after, limit) => {
        const page = await dataOf(api.GET('/api/webhooks', { params: { query: { limit, after } } }))
        return { ...page, entries: page.webhooks }
      }),
    update: async (id: string, body: WebhookChange): Promise<WebhookView> =>
      (await endpoint(id, dataOf(api.PATCH('/api/webhooks/{id}', { ...of(id), body })))).webhook,
    remove: (id: string) => endpoint(id, api.DELETE('/api/webhooks/{id}', of(id))),
    rotate: (id: string, overlapMs: number) =>
      endpoint(id, dataOf(api.POST('/api/webhooks/{id}/rotate', { ...of(id), body: overlap(overlapMs) }))),
    test: (id: string, event_type: string) =>
      endpoint(id, dataOf(api.POST('/api/webhooks/{id}/test', { ...of(id), body: { event_type } }))),
    /** Newest first; of one endpoint or of the organization. */
    deliveries: (filter: {
      endpointId: string | undefined
      status: DeliveryStatus | undefined
      limit: number
    }): Promise<DeliveryView[]> =>
      allPages(
        async (after, limit) => {
          const { endpointId: id, status } = filter
          const query = { limit, status, after }
          const page = await (id === undefined
            ? dataOf(api.GET('/api/webhook-deliveries', { params: { query } }))
            : endpoint(id, dataOf(api.GET('/api/webhooks/{id}/deliveries', { params: { path: { id }, query } }))))
          return { ...page, entries: page.deliveries }
        },
        filter.limit,
        largestDeliveryPage,
      ),
    async redeliver(delivery: string): Promise<DeliveryView> {
      const params = { path: { delivery } }
      const sent = dataOf(api.POST('/api/webhook-deliveries/{delivery}/redeliver', { params }))
      return (await orAbsent(sent, `There is no delivery '${delivery}' here. See: infer webhook deliveries`)).delivery
    },
    /** The secret that signs the webhooks of requests. */
    secret: () => dataOf(api.GET('/api/organizations/{organization}/webhook-secret', secretPath)),
    rotateSecret: (overlapMs: number) =>
      dataOf(
        api.POST('/api/organizations/{organization}/webhook-secret/rotate', {
          ...secretPath,
          body: overlap(overlapMs),
        }),
      ),
  }
}
export type WebhookClient = Awaited<ReturnType<typeof openWebhookClient>>

const endpoint = <T>(id: string, call: Promise<T>): Promise<T> =>
  orAbsent(call, `There is no webhook endpoint '${id}' here. See: infer webhook list`)

/** Rejects with this sentence where the server knows no such thing, because it names the command that lists them. */
const orAbsent = <T>(call: Promise<T>, sentence: string): Promise<T> =>
  call.catch((thrown: unknown) => {
    throw thrown instanceof Failure && thrown.code === 'not_found' ? refused('not_found', sentence) : thrown
  })

/** The organization of the token. Throws usage if another one is meant. */
async function ownOrganization({ api }: Client, idOrName: string | undefined): Promise<string> {
  const { id, name } = (await dataOf(api.GET('/api/me'))).organization
  if (idOrName === undefined || idOrName === id || idOrName === name) return id
  throw usageFailure(`INFER_TOKEN belongs to the organization '${name}' (${id}), not to '${idOrName}'.`)
}

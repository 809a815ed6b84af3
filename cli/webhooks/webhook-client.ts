import type { DeliveryStatus } from '../../core/store/store.ts'
import type { DeliveryView, WebhookView } from '../../core/webhooks/webhook-view.ts'
import { organizationIdFor, ownOrganization } from '../accounts/account-client.ts'
import { allPages, type Client, dataOf, memberOf } from '../client/client.ts'
import { orAbsent } from '../client/refusal.ts'
import { usageFailure } from '../terminal/exit-codes.ts'

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
  const organization = await organizationOf(client, idOrName)
  const { api } = client.isInProcess && organization !== undefined ? client.withToken(organization) : client
  const secretPath = async () => ({
    params: { path: { organization: organization ?? (await ownOrganization(client)).id } },
  })

  return {
    create: (body: { name: string; url: string; event_types: string[]; enabled: boolean }) =>
      dataOf(api.POST('/api/webhooks', { body })),
    /** Returns all endpoints, newest first. */
    list: (): Promise<WebhookView[]> =>
      allPages(async (after, limit) => {
        const page = await dataOf(api.GET('/api/webhooks', { params: { query: { limit, after } } }))
        return { ...page, entries: page.webhooks }
      }),
    update: (id: string, body: WebhookChange): Promise<WebhookView> =>
      endpoint(id, memberOf(api.PATCH('/api/webhooks/{id}', { ...of(id), body }), 'webhook')),
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
      const sent = memberOf(api.POST('/api/webhook-deliveries/{delivery}/redeliver', { params }), 'delivery')
      return orAbsent(sent, `There is no delivery '${delivery}' here. See: infer webhook deliveries`)
    },
    /** The secret that signs the webhooks of requests. */
    secret: async () => dataOf(api.GET('/api/organizations/{organization}/webhook-secret', await secretPath())),
    rotateSecret: async (overlapMs: number) =>
      dataOf(
        api.POST('/api/organizations/{organization}/webhook-secret/rotate', {
          ...(await secretPath()),
          body: overlap(overlapMs),
        }),
      ),
  }
}
export type WebhookClient = Awaited<ReturnType<typeof openWebhookClient>>

const endpoint = <T>(id: string, call: Promise<T>): Promise<T> =>
  orAbsent(call, `There is no webhook endpoint '${id}' here. See: infer webhook list`)

/**
 * The organization with this id or name, or undefined for that of the client's token. Throws usage if a server's token
 * belongs to another one, and not_found if it was deleted.
 */
async function organizationOf(client: Client, idOrName: string | undefined): Promise<string | undefined> {
  if (client.isInProcess) return organizationIdFor(client, idOrName, { mayBeDeleted: false })
  if (idOrName === undefined) return undefined
  const { id, name } = await ownOrganization(client)
  if (idOrName === id || idOrName === name) return id
  throw usageFailure(`INFER_TOKEN belongs to the organization '${name}' (${id}), not to '${idOrName}'.`)
}

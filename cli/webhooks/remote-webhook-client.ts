import { z } from 'zod'
import { DeliveryView, WebhookSecretView, WebhookView } from '../../core/webhooks/webhook-view.ts'
import type { Client } from '../client/client.ts'
import { usage } from '../terminal/exit-codes.ts'
import type { OrganizationOption, WebhookClient } from './webhook-client.ts'

const Me = z.object({ organization: z.object({ id: z.string(), name: z.string() }) })
const One = z.object({ webhook: WebhookView })
const WithSecret = z.object({ webhook: WebhookView, signing_secret: z.string() })
const Page = z.object({ webhooks: z.array(WebhookView), has_more: z.boolean(), next_cursor: z.string().nullable() })
const Deleted = z.object({ deleted: z.boolean() })
const Tested = z.object({
  success: z.boolean(),
  status_code: z.number().nullable(),
  duration_ms: z.number(),
  error: z.string().nullable(),
})
const Deliveries = z.object({ deliveries: z.array(DeliveryView), next_cursor: z.string().nullable() })
const OneDelivery = z.object({ delivery: DeliveryView })

const base = '/api/webhooks'
/** Maximum number of pages, in case a server always reports more. */
const maxPages = 1_000
const largestPage = 50

/** Manages webhooks of another server through its API. INFER_TOKEN needs the scopes admin:read and admin:write. */
export function openRemoteWebhookClient(client: Client): WebhookClient {
  /** The organization of the token. Throws usage if another one is meant. */
  async function own(organization: OrganizationOption): Promise<string> {
    const { id, name } = (await client.ask({ method: 'GET', path: '/api/me', answer: Me })).organization
    if (organization === undefined || organization === id || organization === name) return id
    throw usage(`INFER_TOKEN belongs to the organization '${name}' (${id}), not to '${organization}'.`)
  }
  const checked = async (organization: OrganizationOption): Promise<unknown> =>
    organization === undefined ? undefined : own(organization)
  const at = (id: string, rest = '') => `${base}/${encodeURIComponent(id)}${rest}`
  const secretOf = async (organization: OrganizationOption) =>
    `/api/organizations/${await own(organization)}/webhook-secret`
  const overlap = (ms: number) => ({ overlap_seconds: Math.round(ms / 1000) })

  return {
    async create(organization, body) {
      await checked(organization)
      return client.ask({ method: 'POST', path: base, body, answer: WithSecret })
    },
    async list(organization) {
      await checked(organization)
      const found: WebhookView[] = []
      let after: string | null = null
      for (let page = 0; page < maxPages; page++) {
        const path: string = `${base}?limit=100${after === null ? '' : `&after=${after}`}`
        const { webhooks, has_more, next_cursor }: z.output<typeof Page> = await client.ask({
          method: 'GET',
          path,
          answer: Page,
        })
        found.push(...webhooks)
        if (!has_more || next_cursor === null) break
        after = next_cursor
      }
      return found
    },
    async update(organization, id, body) {
      await checked(organization)
      return (await client.ask({ method: 'PATCH', path: at(id), body, answer: One })).webhook
    },
    async remove(organization, id) {
      await checked(organization)
      await client.ask({ method: 'DELETE', path: at(id), answer: Deleted })
    },
    async rotate(organization, id, overlapMs) {
      await checked(organization)
      return client.ask({ method: 'POST', path: at(id, '/rotate'), body: overlap(overlapMs), answer: WithSecret })
    },
    async test(organization, id, type) {
      await checked(organization)
      return client.ask({ method: 'POST', path: at(id, '/test'), body: { event_type: type }, answer: Tested })
    },
    async deliveries(organization, { endpointId, status, limit }) {
      await checked(organization)
      const found: DeliveryView[] = []
      let after: string | null = null
      do {
        const query = new URLSearchParams({
          limit: String(Math.min(limit - found.length, largestPage)),
          ...(status ? { status } : {}),
          ...(after === null ? {} : { after }),
        })
        const path: string = `${endpointId === undefined ? '/api/webhook-deliveries' : at(endpointId, '/deliveries')}?${query.toString()}`
        const page: z.output<typeof Deliveries> = await client.ask({ method: 'GET', path, answer: Deliveries })
        found.push(...page.deliveries)
        after = page.next_cursor
      } while (after !== null && found.length < limit)
      return found
    },
    async redeliver(organization, id) {
      await checked(organization)
      const path = `/api/webhook-deliveries/${encodeURIComponent(id)}/redeliver`
      return (await client.ask({ method: 'POST', path, answer: OneDelivery })).delivery
    },
    async secret(organization) {
      return client.ask({ method: 'GET', path: await secretOf(organization), answer: WebhookSecretView })
    },
    async rotateSecret(organization, overlapMs) {
      const path = `${await secretOf(organization)}/rotate`
      return client.ask({ method: 'POST', path, body: overlap(overlapMs), answer: WebhookSecretView })
    },
    close: () => Promise.resolve(),
  }
}

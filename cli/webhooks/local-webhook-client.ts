import { join } from 'node:path'
import { readConfig } from '../../core/models/config.ts'
import type { WebhookEndpoint } from '../../core/store/store.ts'
import { requireEventTypes, webhookRules } from '../../core/webhooks/endpoint-rules.ts'
import { openEndpoints } from '../../core/webhooks/endpoints.ts'
import { deliveryView, webhookSecretView, webhookView } from '../../core/webhooks/webhook-view.ts'
import { openMessages } from '../../core/webhooks/webhooks.ts'
import type { Installation } from '../accounts/installation.ts'
import { findOrganization } from '../accounts/organizations.ts'
import { noDelivery, noEndpoint, type OrganizationOption, type WebhookClient } from './webhook-client.ts'

const pageSize = 100

/**
 * Manages webhooks directly in the store of this machine. A running server notices changes of endpoints with its next
 * event, and deliveries to send again within ten seconds.
 */
export function openLocalWebhookClient(
  dataDir: string,
  { accounts, actor, store, keys, close }: Installation,
): WebhookClient {
  const { webhooks: config, public_url } = readConfig(join(dataDir, 'infer.yaml'), false)
  const endpoints = openEndpoints({ store, key: keys.webhooks, rules: webhookRules(config) })
  const messages = openMessages({ keys, config })
  const idOf = async (organization: OrganizationOption) => (await findOrganization(accounts, organization)).id
  const shown = (endpoint: WebhookEndpoint) => webhookView(endpoint, endpoints.hintOf(endpoint))

  return {
    async create(organization, { event_types, ...options }) {
      const { endpoint, secret } = await endpoints.create(
        {
          ...options,
          organizationId: await idOf(organization),
          eventTypes: event_types,
          origin: public_url ?? null,
        },
        actor,
      )
      return { webhook: shown(endpoint), signing_secret: secret }
    },

    async list(organization) {
      const organizationId = await idOf(organization)
      const found: WebhookEndpoint[] = []
      for (;;) {
        const page = await endpoints.list(organizationId, { limit: pageSize, after: found.at(-1)?.id })
        found.push(...page)
        if (page.length < pageSize) return found.map(shown)
      }
    },

    async update(organization, id, { name, url, event_types, enabled }) {
      const changed = await endpoints.update(
        await idOf(organization),
        id,
        {
          ...(name === undefined ? {} : { name }),
          ...(url === undefined ? {} : { url }),
          ...(event_types === undefined ? {} : { eventTypes: event_types }),
          ...(enabled === undefined ? {} : { enabled }),
        },
        actor,
      )
      if (!changed) throw noEndpoint(id)
      return shown(changed)
    },

    async remove(organization, id) {
      if (!(await endpoints.remove(await idOf(organization), id, actor))) throw noEndpoint(id)
    },

    async rotate(organization, id, overlapMs) {
      const rotated = await endpoints.rotate(await idOf(organization), id, overlapMs, actor)
      if (!rotated) throw noEndpoint(id)
      return { webhook: shown(rotated.endpoint), signing_secret: rotated.secret }
    },

    async test(organization, id, type) {
      requireEventTypes([type], '--type')
      const endpoint = await endpoints.find(await idOf(organization), id)
      if (!endpoint || !(await endpoints.recordTest(endpoint, type, actor))) throw noEndpoint(id)
      const { success, statusCode, durationMs, error } = await messages.test(
        endpoint,
        type,
        new AbortController().signal,
      )
      return { success, status_code: statusCode, duration_ms: durationMs, error }
    },

    async deliveries(organization, { endpointId, status, limit }) {
      const organizationId = await idOf(organization)
      if (endpointId !== undefined && !(await endpoints.find(organizationId, endpointId))) throw noEndpoint(endpointId)
      return (await endpoints.deliveries(organizationId, { limit, status, endpointId })).map(deliveryView)
    },

    async redeliver(organization, id) {
      const again = await endpoints.redeliver(await idOf(organization), id, actor)
      if (!again) throw noDelivery(id)
      return deliveryView(again)
    },

    async secret(organization) {
      return webhookSecretView(await endpoints.organizationSecret(await idOf(organization)))
    },
    async rotateSecret(organization, overlapMs) {
      return webhookSecretView(await endpoints.rotateOrganizationSecret(await idOf(organization), overlapMs, actor))
    },

    async close() {
      await messages.close()
      await close()
    },
  }
}

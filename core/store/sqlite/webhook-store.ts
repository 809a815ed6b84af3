import type { WebhookStore } from '../webhooks.ts'
import type { Reader } from './reader.ts'
import type { WriterThread } from './writer-thread.ts'

/** The webhooks of the store: commands of the writer and reads of the calling thread. */
export const webhookStore = (
  send: WriterThread['send'],
  { webhooks: reads }: Pick<Reader, 'webhooks'>,
): WebhookStore => ({
  async create(endpoint) {
    await send('webhooks.create', endpoint)
    return reads.find(endpoint.organizationId, endpoint.id)!
  },
  find: async (organizationId, id) => reads.find(organizationId, id),
  list: async (organizationId, page) => reads.list(organizationId, page),
  async update(organizationId, id, change, at) {
    const updated = await send('webhooks.update', { organizationId, id, change, at })
    return updated ? reads.find(organizationId, id) : undefined
  },
  async rotate(organizationId, id, previousUntil, at) {
    const rotated = await send('webhooks.rotate', { organizationId, id, previousUntil, at })
    return rotated ? reads.find(organizationId, id) : undefined
  },
  remove: async (organizationId, id) => (await send('webhooks.remove', { organizationId, id })) || undefined,
  secretOf: async organizationId => reads.secretOf(organizationId),
  async rotateSecret(organizationId, previousUntil, at) {
    await send('webhooks.rotateSecret', { organizationId, previousUntil, at })
    return reads.secretOf(organizationId)
  },
  withoutBody: async limit => reads.withoutBody(limit),
  keepBodies: bodies =>
    send(
      'webhooks.keepBodies',
      bodies,
      bodies.reduce((sum, { body }) => sum + body.length, 0),
    ),
  targets: async (after, limit) => reads.targets(after, limit),
  due: async (target, now, limit) => reads.due(target, now, limit),
  settle: attempt => send('webhooks.settle', attempt, attempt.responseBody?.length ?? 0),
  deliveries: async (organizationId, filter) => reads.deliveries(organizationId, filter),
  delivery: async (organizationId, id) => reads.delivery(organizationId, id),
  async redeliver(organizationId, id, at) {
    const found = await send('webhooks.redeliver', { organizationId, id, at })
    return found ? reads.delivery(organizationId, id) : undefined
  },
  sweep: (before, at, limit) => send('webhooks.sweep', { before, at, limit }),
  counts: async limit => reads.counts(limit),
})

import { theServer } from '../audit-records.ts'
import type { WebhookStore } from '../webhooks.ts'
import type { Reader } from './reader.ts'
import type { WriterThread } from './writer-thread.ts'

/** The webhooks of the store: commands of the writer and reads of the calling thread. */
export const webhookStore = (
  send: WriterThread['send'],
  { webhooks: reads }: Pick<Reader, 'webhooks'>,
): WebhookStore => ({
  async create(endpoint, by = theServer) {
    await send('webhooks.create', { endpoint, by })
    return reads.find(endpoint.organizationId, endpoint.id)!
  },
  find: async (organizationId, id) => reads.find(organizationId, id),
  list: async (organizationId, page) => reads.list(organizationId, page),
  async update(organizationId, id, change, at, by = theServer) {
    const updated = await send('webhooks.update', { organizationId, id, change, at, by })
    return updated ? reads.find(organizationId, id) : undefined
  },
  async rotate(organizationId, id, previousUntil, at, by = theServer) {
    const rotated = await send('webhooks.rotate', { organizationId, id, previousUntil, at, by })
    return rotated ? reads.find(organizationId, id) : undefined
  },
  remove: async (organizationId, id, at, by = theServer) =>
    (await send('webhooks.remove', { organizationId, id, at, by })) || undefined,
  secretOf: async organizationId => reads.secretOf(organizationId),
  async rotateSecret(organizationId, previousUntil, at, by = theServer) {
    await send('webhooks.rotateSecret', { organizationId, previousUntil, at, by })
    return reads.secretOf(organizationId)
  },
  recordTest: (organizationId, id, type, at, by = theServer) =>
    send('webhooks.recordTest', { organizationId, id, type, at, by }),
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
  async redeliver(organizationId, id, at, by = theServer) {
    const found = await send('webhooks.redeliver', { organizationId, id, at, by })
    return found ? reads.delivery(organizationId, id) : undefined
  },
  sweep: (before, at, limit) => send('webhooks.sweep', { before, at, limit }),
  counts: async limit => reads.counts(limit),
})

import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import {
  type DeliveryAttempt,
  type DueDelivery,
  type NewWebhookEndpoint,
  type RequestWebhook,
  type Store,
  theServer,
} from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { createOrganization, newJob, organizationId } from './records.ts'

const at = 1_750_000_000_000
const newEndpoint = (endpoint: Partial<NewWebhookEndpoint> = {}): NewWebhookEndpoint => ({
  id: newId('whe'),
  organizationId,
  name: 'n',
  url: 'https://example.com/hook',
  eventTypes: ['job.*'],
  enabled: true,
  origin: null,
  createdAt: at,
  ...endpoint,
})
const ownWebhook: RequestWebhook = {
  url: 'https://own.example:443/x?y',
  eventTypes: ['job.cancelled'],
  form: 'fal',
  origin: 'http://here',
}
const attempt = (number: number, outcome: DeliveryAttempt['outcome'], more: object = {}): DeliveryAttempt => ({
  number,
  outcome,
  at: at + 10,
  nextAt: outcome === 'retry' ? at + 1_000 : null,
  statusCode: outcome === 'delivered' ? 200 : 500,
  durationMs: 3,
  error: outcome === 'delivered' ? null : 'It failed.',
  responseBody: 'ok',
  gone: false,
  ...more,
})
const later = Number.MAX_SAFE_INTEGER

/** Submits and cancels a job: two events. */
async function twoEvents(store: Store, more: Parameters<typeof newJob>[0] = {}): Promise<string> {
  const job = newJob({ createdAt: at, ...more })
  await store.jobs.submit(job)
  await store.jobs.cancel(job.organizationId, job.id, at + 1)
  return job.id
}
/** Gives all new deliveries a body. */
async function makeBodies(store: Store): Promise<void> {
  const found = await store.webhooks.withoutBody(1_000)
  await store.webhooks.keepBodies(found.map(({ number, type }) => ({ number, body: `"${type}"` })))
}
async function dueOf(store: Store, target: string): Promise<DueDelivery[]> {
  await makeBodies(store)
  return store.webhooks.due(target, later, 100)
}

export function webhookRules({ fresh }: Subject): void {
  test('endpoints are created, listed, changed, rotated and removed', async () => {
    await using opened = await fresh()
    const { webhooks } = opened.store
    const first = await webhooks.create(newEndpoint())
    expect(first).toEqual({
      ...newEndpoint({ id: first.id }),
      disabledReason: null,
      secret: { version: 1, previousUntil: null },
      updatedAt: at,
    })
    const second = await webhooks.create(newEndpoint({ name: 'second', enabled: false }))
    expect(await webhooks.list(organizationId, { limit: 5 })).toEqual([second, first])
    expect(await webhooks.list(organizationId, { limit: 5, after: second.id })).toEqual([first])
    const change = { name: 'x', url: 'https://other.example', eventTypes: ['*'] }
    expect(await webhooks.update(organizationId, first.id, change, at + 5)).toEqual({
      ...first,
      ...change,
      updatedAt: at + 5,
    })
    expect((await webhooks.rotate(organizationId, first.id, at + 99, at + 6))?.secret).toEqual({
      version: 2,
      previousUntil: at + 99,
    })
    expect(await webhooks.remove(organizationId, first.id, at)).toBe(true)
    expect(await webhooks.remove(organizationId, first.id, at)).toBeUndefined()
    for (const none of [
      webhooks.find(organizationId, first.id),
      webhooks.find('org_other', second.id),
      webhooks.update('org_other', second.id, { name: 'y' }, at),
      webhooks.rotate('org_other', second.id, null, at),
      webhooks.remove('org_other', second.id, at),
    ])
      expect(await none).toBeUndefined()
  })

  test('every change of an endpoint and of a secret is in the audit log, without secrets', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { webhooks } = store
    const by = { ...theServer, kind: 'command_line', osUser: 'ada' } as const
    const { id } = await webhooks.create(newEndpoint({ url: 'https://example.com/hook?key=geheim' }), by)
    await webhooks.update(organizationId, id, { url: 'https://example.com/hook?key=anders', enabled: false }, at, by)
    await webhooks.update(organizationId, id, { enabled: false }, at, by)
    await webhooks.rotate(organizationId, id, at + 9_000, at, by)
    expect(await webhooks.recordTest(organizationId, id, 'job.completed', at, by)).toBe(true)
    expect(await webhooks.recordTest('org_other', id, 'job.completed', at, by)).toBe(false)
    await webhooks.update(organizationId, id, { enabled: true }, at)
    await twoEvents(store)
    const [due] = await dueOf(store, id)
    await webhooks.redeliver(organizationId, due!.id, at, by)
    await webhooks.remove(organizationId, id, at, by)
    await webhooks.remove(organizationId, id, at, by)
    await webhooks.rotateSecret(organizationId, null, at, by)
    await twoEvents(store, { webhook: { ...ownWebhook, eventTypes: ['*'] } })
    const [own] = (await webhooks.deliveries(organizationId, { limit: 9 })).filter(one => one.endpointId === null)
    await webhooks.redeliver(organizationId, own!.id, at, by)

    const { records } = await store.audit.list(organizationId, { limit: 50 })
    const found = records.filter(one => one.action.includes('webhook')).toReversed()
    const hook = 'https://example.com/hook?…'
    const all = { name: 'n', url: hook, event_types: ['job.*'], enabled: true }
    expect(found.map(one => [one.action, one.targetId, one.before, one.after])).toEqual([
      ['webhook_endpoint.created', id, null, all],
      ['webhook_endpoint.updated', id, { url: hook, enabled: true }, { url: hook, enabled: false }],
      [
        'webhook_endpoint.secret_rotated',
        id,
        { secret_version: 1 },
        { secret_version: 2, previous_valid_until: (at + 9_000) / 1000 },
      ],
      ['webhook_endpoint.tested', id, null, { url: hook, event_type: 'job.completed' }],
      ['webhook_endpoint.updated', id, { enabled: false }, { enabled: true }],
      ['webhook_endpoint.redelivered', id, null, { delivery_id: due!.id }],
      ['webhook_endpoint.deleted', id, all, null],
      [
        'organization.webhook_secret_rotated',
        organizationId,
        { secret_version: 1 },
        { secret_version: 2, previous_valid_until: null },
      ],
      ['organization.webhook_redelivered', organizationId, null, { delivery_id: own!.id }],
    ])
    expect(found.map(one => one.actor)).toEqual(found.map((_, index) => (index === 4 ? theServer : by)))
    expect(JSON.stringify(records)).not.toMatch(/geheim|anders/)
  })

  test('an organization has a secret without a row, and its number grows with each rotation', async () => {
    await using opened = await fresh()
    const { webhooks } = opened.store
    expect(await webhooks.secretOf(organizationId)).toEqual({ version: 1, previousUntil: null })
    expect(await webhooks.rotateSecret(organizationId, at, at)).toEqual({ version: 2, previousUntil: at })
    expect(await webhooks.rotateSecret(organizationId, null, at)).toEqual({ version: 3, previousUntil: null })
    await expect(webhooks.rotateSecret('org_none', null, at)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('an event makes a delivery for each enabled endpoint of its organization with its type, and no other', async () => {
    await using opened = await fresh()
    const { store } = opened
    await createOrganization(store, 'org_other')
    const all = await store.webhooks.create(newEndpoint())
    const ends = await store.webhooks.create(
      newEndpoint({ eventTypes: ['job.cancelled', 'job.failed'], origin: 'http://a' }),
    )
    await store.webhooks.create(newEndpoint({ eventTypes: ['workflow_execution.*', 'quota.*'] }))
    await store.webhooks.create(newEndpoint({ enabled: false }))
    await store.webhooks.create(newEndpoint({ organizationId: 'org_other' }))
    const id = await twoEvents(store)
    const found = await store.webhooks.withoutBody(100)
    expect(found.map(({ endpointId, type }) => [endpointId, type])).toEqual([
      [all.id, 'job.created'],
      [all.id, 'job.cancelled'],
      [ends.id, 'job.cancelled'],
    ])
    expect(found[2]).toMatchObject({ organizationId, form: 'standard', origin: 'http://a', at: at + 1 })
    expect(found[0]!.subject).toEqual({ jobId: id, executionId: null, nodeId: null, attempt: 0 })
    expect(await store.webhooks.deliveries('org_other', { limit: 9 })).toEqual([])
  })

  test('a job with a webhook of its own makes deliveries of its types to its URL, and keeps it', async () => {
    await using opened = await fresh()
    const { store } = opened
    const id = await twoEvents(store, { webhook: ownWebhook })
    await twoEvents(store)
    expect((await store.jobs.find(organizationId, id))!.webhook).toEqual(ownWebhook)
    const [only, ...others] = await store.webhooks.withoutBody(9)
    expect(others).toEqual([])
    expect(only).toMatchObject({ endpointId: null, form: 'fal', origin: 'http://here', type: 'job.cancelled' })
    const target = `${organizationId} https://own.example`
    const [due] = await dueOf(store, target)
    expect(due).toMatchObject({ url: ownWebhook.url, form: 'fal', object: id, attempts: 0, body: '"job.cancelled"' })
    expect(await store.webhooks.targets('', 9)).toEqual([{ target, nextAt: at + 1, state: 'open' }])
  })

  test('of the deliveries about one object only the first unfinished one is due', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { id: target } = await store.webhooks.create(newEndpoint())
    const jobs = [await twoEvents(store), await twoEvents(store)]
    const shown = async () => (await dueOf(store, target)).map(({ object, type }) => [jobs.indexOf(object), type])
    expect(await shown()).toEqual([
      [0, 'job.created'],
      [1, 'job.created'],
    ])
    const [first, second] = await dueOf(store, target)
    expect(await store.webhooks.settle(attempt(first!.number, 'retry'))).toBe(true)
    expect(await store.webhooks.due(target, at + 999, 9)).toEqual([second])
    expect(await shown()).toEqual([
      [1, 'job.created'],
      [0, 'job.created'],
    ])
    await store.webhooks.settle(attempt(first!.number, 'delivered'))
    await store.webhooks.settle(attempt(second!.number, 'dead'))
    expect(await shown()).toEqual([
      [0, 'job.cancelled'],
      [1, 'job.cancelled'],
    ])
    expect(await store.webhooks.settle(attempt(first!.number, 'dead'))).toBe(false)
    expect(await store.webhooks.delivery(organizationId, first!.id)).toMatchObject({
      status: 'delivered',
      attempts: 2,
      statusCode: 200,
      error: null,
      nextAt: null,
    })
    expect(await store.webhooks.counts(9)).toEqual({ pending: 2, dead: 1 })
  })

  test('a delivery that has ended can be made due again, behind those about its object', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { id: target } = await store.webhooks.create(newEndpoint())
    await twoEvents(store)
    const [first] = await dueOf(store, target)
    await store.webhooks.settle(attempt(first!.number, 'dead'))
    expect(await store.webhooks.redeliver(organizationId, first!.id, at + 50)).toMatchObject({
      status: 'pending',
      attempts: 0,
      nextAt: at + 50,
    })
    const [second] = await dueOf(store, target)
    expect(second!.type).toBe('job.cancelled')
    await store.webhooks.settle(attempt(second!.number, 'delivered'))
    const [again] = await dueOf(store, target)
    expect([again!.id, again!.body]).toEqual([first!.id, first!.body])
    expect(await store.webhooks.redeliver('org_other', first!.id, at)).toBeUndefined()
  })

  test('an endpoint that is gone is disabled with the attempt, and its target is held', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { id } = await store.webhooks.create(newEndpoint())
    await twoEvents(store)
    const [first] = await dueOf(store, id)
    await store.webhooks.settle(attempt(first!.number, 'dead', { gone: true }))
    expect(await store.webhooks.find(organizationId, id)).toMatchObject({ enabled: false, disabledReason: 'gone' })
    expect(await store.webhooks.targets('', 9)).toMatchObject([{ target: id, state: 'held' }])
    await twoEvents(store)
    expect(await store.webhooks.withoutBody(9)).toEqual([])
    expect(await store.webhooks.update(organizationId, id, { enabled: true }, at)).toMatchObject({
      disabledReason: null,
    })
    expect(await store.webhooks.targets('', 9)).toMatchObject([{ target: id, state: 'open' }])
  })

  test('sweep removes what ended before, what a removed endpoint left, and ends what was held too long', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { id: kept } = await store.webhooks.create(newEndpoint())
    await twoEvents(store)
    const [first] = await dueOf(store, kept)
    await store.webhooks.settle(attempt(first!.number, 'delivered'))
    expect(await store.webhooks.sweep(at + 10, at + 20, 9)).toBe(0)
    expect(await store.webhooks.sweep(at + 11, at + 20, 9)).toBe(1)
    const { id: removed } = await store.webhooks.create(newEndpoint())
    await twoEvents(store)
    await store.webhooks.remove(organizationId, removed, at)
    expect(await store.webhooks.targets(`${removed}!`, 9)).toEqual([])
    expect(await store.webhooks.sweep(at, at, 9)).toBe(2)
    expect(await store.webhooks.sweep(at, at, 9)).toBe(0)
    const held = await store.webhooks.deliveries(organizationId, { limit: 9, status: 'pending' })
    expect(held).toHaveLength(3)
    const aWeek = at + 7 * 86_400_000
    // Of each object the first; the others follow once they are the first.
    expect(await store.webhooks.sweep(aWeek, aWeek + 86_400_000, 9)).toBe(2)
    expect(await store.webhooks.sweep(aWeek, aWeek + 86_400_000, 9)).toBe(1)
    expect(await store.webhooks.counts(9)).toEqual({ pending: 0, dead: 3 })
  })

  test('pages of deliveries, newest first, by endpoint and status', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { id: endpointId } = await store.webhooks.create(newEndpoint())
    for (let jobs = 0; jobs < 3; jobs++) await twoEvents(store, { webhook: ownWebhook })
    const all = await store.webhooks.deliveries(organizationId, { limit: 20 })
    expect(all).toHaveLength(9)
    const first = await store.webhooks.deliveries(organizationId, { limit: 4 })
    const rest = await store.webhooks.deliveries(organizationId, { limit: 20, after: first.at(-1)!.id })
    expect([...first, ...rest]).toEqual(all)
    const [due] = await dueOf(store, endpointId)
    await store.webhooks.settle(attempt(due!.number, 'dead'))
    const ids = async (more: object) =>
      (await store.webhooks.deliveries(organizationId, { limit: 20, ...more })).map(({ id }) => id)
    expect(await ids({ endpointId })).toHaveLength(6)
    expect(await ids({ endpointId, status: 'dead' })).toEqual([due!.id])
    expect(await ids({ status: 'pending' })).toHaveLength(8)
    expect(await ids({ status: 'delivered' })).toEqual([])
  })

  test('targets are read from one to the next', async () => {
    await using opened = await fresh()
    const { store } = opened
    const ids = await Promise.all([1, 2, 3].map(async () => (await store.webhooks.create(newEndpoint())).id))
    await twoEvents(store)
    await twoEvents(store)
    await makeBodies(store)
    const names = async (after: string, limit: number) =>
      (await store.webhooks.targets(after, limit)).map(({ target }) => target)
    const sorted = ids.toSorted()
    expect(await names('', 9)).toEqual(sorted)
    expect(await names('', 2)).toEqual(sorted.slice(0, 2))
    expect(await names(sorted[1]!, 2)).toEqual(sorted.slice(2))
  })
}

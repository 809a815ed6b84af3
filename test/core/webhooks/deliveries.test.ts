import { expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { newId } from '../../../core/ids.ts'
import type { DueDelivery, Store } from '../../../core/store/store.ts'
import { type DeliveriesOptions, openDeliveries } from '../../../core/webhooks/deliveries.ts'
import type { AttemptReply } from '../../../core/webhooks/retry.ts'
import { keptLog, newJob, openTestStore, organizationId } from '../store/_store.ts'

const fine: AttemptReply = { statusCode: 204, retryAfter: undefined, body: '', durationMs: 1 }

async function register(store: Store): Promise<string> {
  const id = newId('whe')
  await store.webhooks.create({
    id,
    organizationId,
    name: 'n',
    url: 'https://example.com',
    eventTypes: ['job.*'],
    enabled: true,
    origin: null,
    createdAt: 1,
  })
  return id
}
const submit = (store: Store, jobs: number) =>
  Promise.all(Array.from({ length: jobs }, () => store.jobs.submit(newJob())))

/** A loop whose requests the test answers. */
function byHand(store: Store, more: Partial<DeliveriesOptions> = {}) {
  const { log, lines } = keptLog()
  const running: { delivery: DueDelivery; answer: (reply?: AttemptReply) => void; signal: AbortSignal }[] = []
  const deliveries = openDeliveries({
    store,
    render: async ({ type }) => `"${type}"`,
    send: (delivery, signal) =>
      new Promise(resolve => {
        const one = {
          delivery,
          signal,
          answer(reply: AttemptReply = fine) {
            running.splice(running.indexOf(one), 1)
            resolve(reply)
          },
        }
        running.push(one)
        signal.addEventListener('abort', () =>
          one.answer({ statusCode: null, why: 'The server stopped.', durationMs: 1 }),
        )
      }),
    delays: [1],
    parallel: 5,
    parallelPerTarget: 3,
    retentionMs: 1e9,
    log,
    tickMs: 1e6,
    ...more,
  })
  const sent = (count: number) => expect.poll(() => running.length).toBe(count)
  return { deliveries, running, lines, sent }
}
const idle = (store: Store) => expect.poll(async () => (await store.webhooks.counts(99)).pending).toBe(0)

test('so many messages are sent at a time, in total and to one target; a slow target does not hold up another', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  const [slow, other] = [await register(store), await register(store)]
  const { deliveries, running, sent } = byHand(store)
  await submit(store, 10)
  await sent(5)
  const to = (target: string) => running.filter(({ delivery }) => delivery.endpointId === target)
  expect([to(slow).length, to(other).length].toSorted((a, b) => a - b)).toEqual([2, 3])
  // The others of `slow` never answer.
  for (let answered = 0; answered < 10; answered++) {
    await expect.poll(() => to(other).length).toBeGreaterThan(0)
    to(other)[0]!.answer()
  }
  await expect.poll(async () => (await store.webhooks.counts(99)).pending).toBe(10)
  await sent(3)
  for (let answered = 0; answered < 10; answered++) {
    await expect.poll(() => running.length).toBeGreaterThan(0)
    running[0]!.answer()
  }
  await idle(store)
  expect(deliveries.totals()).toEqual({ delivered: 20, failed: 0, dead: 0 })
  await deliveries.close()
})

test('an attempt that the stop cuts off is not counted, and is made again after the start', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  await register(store)
  const before = byHand(store)
  await submit(store, 1)
  await before.sent(1)
  const { id } = before.running[0]!.delivery
  await before.deliveries.close()
  expect(await store.webhooks.delivery(organizationId, id)).toMatchObject({ status: 'pending', attempts: 0 })
  const after = byHand(store)
  await after.sent(1)
  expect(after.running[0]!.delivery).toMatchObject({ id, attempts: 0 })
  after.running[0]!.answer()
  await idle(store)
  await after.deliveries.close()
})

test('an attempt that ends during the stop is recorded', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  await register(store)
  const { deliveries, running, sent } = byHand(store)
  await submit(store, 1)
  await sent(1)
  const closing = deliveries.close()
  running[0]!.answer()
  await closing
  await idle(store)
})

test('a body that the store refuses holds up no other: it is replaced by the ids, or ends the delivery', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  await register(store)
  const [long, never, usual] = (await submit(store, 3)).map(({ job }) => job.id)
  const idOf = ({ subject }: { subject: { jobId: string } }) => subject.jobId
  const numbers = new Map<number, string>()
  const { deliveries, running, sent, lines } = byHand(
    {
      ...store,
      webhooks: {
        ...store.webhooks,
        async withoutBody(limit) {
          const found = await store.webhooks.withoutBody(limit)
          for (const one of found) numbers.set(one.number, idOf(one as never))
          return found
        },
        keepBodies: bodies =>
          bodies.some(({ number, body }) => numbers.get(number) === never || body === `"${long}"`)
            ? Promise.reject(new Error('refused'))
            : store.webhooks.keepBodies(bodies),
      },
    },
    { render: async delivery => `"${idOf(delivery as never)}"` },
  )
  await sent(2)
  expect(running.map(({ delivery }) => delivery.body).toSorted()).toEqual([
    `"${usual}"`,
    expect.stringContaining(`"id":"${long}"`),
  ])
  deliveries.wake()
  for (const one of running.slice()) one.answer()
  await expect.poll(() => store.webhooks.counts(99)).toEqual({ pending: 0, dead: 1 })
  const [dead] = await store.webhooks.deliveries(organizationId, { limit: 9, status: 'dead' })
  expect(dead!.error).toBe('This could not be sent: Its body cannot be stored.')
  expect(lines.filter(line => line.includes('the store refuses its body'))).toHaveLength(1)
  await deliveries.close()
})

test('a body that cannot be made is replaced by the ids, and an error is logged unless the object is gone', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  await register(store)
  const { deliveries, running, sent, lines } = byHand(store, {
    render: ({ type }) =>
      Promise.reject(type === 'job.created' ? new Failure('not_found', 'It is gone.') : new Error('broken')),
  })
  const { job } = (await submit(store, 1))[0]!
  await sent(1)
  expect(JSON.parse(running[0]!.delivery.body)).toMatchObject({ type: 'job.created', data: { id: job.id } })
  expect(lines.filter(line => line.includes('could not be made'))).toEqual([])
  running[0]!.answer()
  await store.jobs.cancel(organizationId, job.id, Date.now())
  await expect.poll(() => running[0]?.delivery.type).toBe('job.cancelled')
  expect(JSON.parse(running[0]!.delivery.body)).toMatchObject({ data: { id: job.id } })
  expect(lines.filter(line => line.includes('could not be made'))).toHaveLength(1)
  running[0]!.answer()
  await deliveries.close()
})

test('an outcome that the store cannot take is recorded later, and the message is not sent again meanwhile', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  await register(store)
  let full = 1
  const { deliveries, running, sent } = byHand({
    ...store,
    webhooks: {
      ...store.webhooks,
      settle: attempt =>
        full-- > 0 ? Promise.reject(new Failure('disk_full', 'The disk is full.')) : store.webhooks.settle(attempt),
    },
  })
  await submit(store, 1)
  await sent(1)
  running[0]!.answer()
  deliveries.wake()
  await expect.poll(async () => (await store.webhooks.counts(9)).pending).toBe(0)
  expect([running.length, deliveries.totals().delivered]).toEqual([0, 1])
  await deliveries.close()
})

test('an outcome that can never be recorded is logged once, and the message is not sent again', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  await register(store)
  const { deliveries, running, sent, lines } = byHand({
    ...store,
    webhooks: { ...store.webhooks, settle: () => Promise.reject(new Error('a bug')) },
  })
  await submit(store, 2)
  await sent(2)
  for (const one of running.slice()) one.answer()
  await expect.poll(() => lines.filter(line => line.includes('could not be recorded')).length).toBe(2)
  await submit(store, 1)
  await sent(1)
  await deliveries.close()
})

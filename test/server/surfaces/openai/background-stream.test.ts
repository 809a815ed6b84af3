import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import type { JobRecord } from '../../../../core/store/store.ts'
import type { Owners } from '../../../../server/http/request/owners.ts'
import { streamBackground } from '../../../../server/surfaces/openai/responses/background.ts'
import { openExchange } from '../../_exchange.ts'

const event = (type: string, sequence_number: number) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number })}\n\n`
const job = { id: 'job_1', status: 'completed' } as JobRecord
const stored = { record: { id: 'resp_1', organizationId: 'org_1' }, job } as Parameters<typeof streamBackground>[1]

/** Streams a response with these parts of its owners, and returns the data of the events. */
async function streamed(owners: { find?: () => Promise<JobRecord | undefined>; events?: () => Promise<string> }) {
  const { exchange, text } = openExchange()
  const done = streamBackground(exchange, stored, -1, {
    jobs: { follow: () => () => undefined, find: owners.find ?? (async () => job) },
    responses: {
      firstEvents: () => event('response.created', 0) + event('response.in_progress', 1),
      eventsOf: owners.events ?? (async () => event('response.completed', 2)),
    },
  } as unknown as Owners)
  // What goes wrong is logged where requests are dispatched.
  await done.catch((thrown: unknown) => expect(thrown).toBeInstanceOf(Failure))
  expect(exchange.res.writableEnded).toBe(true)
  return [...text().matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as Record<string, unknown>)
}

test('a response that has ended is streamed to its end', async () => {
  expect((await streamed({})).map(({ type }) => type)).toEqual([
    'response.created',
    'response.in_progress',
    'response.completed',
  ])
})

test.each<[string, Parameters<typeof streamed>[0], object]>([
  [
    'its result is no longer kept',
    { events: () => Promise.reject(new Failure('output_expired', 'The result is no longer kept.')) },
    { code: 'output_expired', message: 'The result is no longer kept.' },
  ],
  [
    'an error inside infer',
    { find: () => Promise.reject(new Error('disk')) },
    { code: 'internal_error', message: expect.not.stringContaining('disk') },
  ],
  [
    'it was deleted meanwhile',
    { find: async () => undefined },
    { code: 'not_found', message: expect.stringContaining('resp_1') },
  ],
])('a stream that cannot go on ends with an error event: %s', async (_, owners, error) => {
  const events = await streamed(owners)
  // The number of the last event that arrived: a reader that goes on after it misses none.
  expect(events.at(-1)).toEqual({ type: 'error', sequence_number: 1, param: null, ...error })
  expect(events).toHaveLength(3)
})

test('a stream that the server ends because it stops has an error event too', async () => {
  const { exchange, text } = openExchange()
  const waiting = streamBackground(exchange, stored, 0, {
    jobs: { follow: () => () => undefined, find: async () => ({ ...job, status: 'processing' }) },
    responses: { firstEvents: () => event('response.created', 0) },
  } as unknown as Owners)
  await Promise.resolve()
  exchange.streams.dismissAll()
  await waiting
  expect(text()).toMatch(/event: error\ndata: \{"type":"error","sequence_number":0,"code":"shutting_down"/)
})

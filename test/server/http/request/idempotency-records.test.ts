import { expect, test } from 'vitest'
import { openIdempotencyRecords } from '../../../../server/http/request/idempotency-records.ts'

const warnings: string[] = []
const log = { warn: (message: string) => warnings.push(message) }
const steady = { now: () => 1 }
const answer = { status: 200, body: '{}', jobId: null }

/** Records in a store that finds nothing and keeps no answer. */
const openFailing = () => {
  const idempotency = { find: () => Promise.resolve(undefined), keep: () => Promise.reject(new Error('disk')) }
  return openIdempotencyRecords({ store: { idempotency }, steady, log } as unknown as Parameters<
    typeof openIdempotencyRecords
  >[0])
}

test('a key is free as soon as its answer could not be stored, which is only logged', async () => {
  const records = openFailing()
  await (await records.lock('k', 'a')).keep(answer)
  expect(warnings).toEqual(['An answer could not be stored for its idempotency key'])
  await expect(records.lock('k', 'a')).resolves.toMatchObject({ reply: undefined })
})

test('releasing a lock again does not free the key of a later request', async () => {
  const records = openFailing()
  const first = await records.lock('k', 'a')
  await first.keep(answer)
  await records.lock('k', 'a')
  first.release()
  await expect(records.lock('k', 'a')).rejects.toMatchObject({ code: 'idempotency_key_in_use' })
})

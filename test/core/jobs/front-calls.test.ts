import { expect, test } from 'vitest'
import { AbortSource } from '../../../core/abort-source.ts'
import type { Admitted } from '../../../core/admission/admission.ts'
import { Failure } from '../../../core/failure.ts'
import type { CallEnd } from '../../../core/jobs/call.ts'
import { openFrontCalls, passOn } from '../../../core/jobs/front-calls.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import type { FinishedJob } from '../../../core/store/store.ts'
import { admittedWork } from '../_admission.ts'
import { keptLog } from '../store/_store.ts'

const usage = { inputTokens: 1, outputTokens: 1 }

/** Runs one call that ends in this way, and returns what it leaves. */
async function ran(end: CallEnd) {
  const records: FinishedJob[] = []
  const passed: string[] = []
  const held: string[] = []
  const released: string[] = []
  const lease = { engineId: 'e', used: () => ({ gpuMs: 1, energyMj: null }), release() {} } as unknown as Lease
  const calls = openFrontCalls({
    take: () => lease,
    wait: () => Promise.reject(passOn),
    reasonOf: () => ({ text: null, etaMs: null }),
    ran() {},
    record: record => void records.push(record),
    passedOn: id => void passed.push(id),
    spend: {
      hold: id => void held.push(id),
      release: id => void released.push(id),
      settle: id => void released.push(id),
    },
    used() {},
    log: keptLog().log,
  })
  const work = { organizationId: 'org', tokenId: 't', task: 'std/chat-completion', modelId: 'm' } as const
  const spender = { originId: 't', parents: [] } as unknown as Admitted['spender']
  const admitted = { ...admittedWork(work), spender }
  const options = { admitted, createdAt: 1, waitMs: 1, caller: new AbortSource() }
  const thrown = await calls
    .run(options, () => Promise.resolve(end))
    .then(
      () => undefined,
      (cause: unknown) => cause,
    )
  expect(released).toEqual(held)
  expect([...calls.running()]).toEqual([])
  return { statuses: records.map(({ status }) => status), passed: passed.length, isPassedOn: thrown === passOn }
}

test.each<[title: string, end: CallEnd, left: object]>([
  [
    'a call that ends well is recorded',
    { how: 'completed', usage },
    { statuses: ['completed'], passed: 0, isPassedOn: false },
  ],
  [
    'one that control tries again leaves no record, and control is told',
    { how: 'retry', failure: new Failure('worker_error', 'It ended.') },
    { statuses: [], passed: 1, isPassedOn: true },
  ],
  [
    'one that has failed is recorded',
    { how: 'failed', failure: new Failure('worker_error', 'It ended.'), usage },
    { statuses: ['failed'], passed: 0, isPassedOn: false },
  ],
])('%s', async (_, end, left) => {
  expect(await ran(end)).toEqual(left)
})

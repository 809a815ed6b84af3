import { createSecretKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { openLog } from '../../../core/log.ts'
import type { Store } from '../../../core/store/store.ts'
import type { Wait } from '../../../core/store/waits.ts'
import { openWaits } from '../../../core/workflows/waits.ts'

/** Waits over a store of these rows, at the time 100. `refused`: the job that it cannot end. */
function opened(rows: Partial<Wait>[], refused?: string) {
  const logged: string[] = []
  const ended = new Map<string, unknown>()
  const all = rows.map(
    (row, at): Wait => ({
      organizationId: 'org_1',
      jobId: `job_${at}`,
      executionId: 'exec_1',
      nodeId: 'ask',
      item: null,
      workflowId: null,
      workflowName: 'W',
      awaits: 'approval',
      request: '{"title":"x"}',
      origin: '',
      createdAt: 0,
      digest: randomBytes(32),
      remindAt: null,
      dueAt: 100,
      ...row,
    }),
  )
  const open = () => all.filter(({ jobId }) => !ended.has(jobId))
  const store = {
    waits: {
      nextDue: () => Promise.resolve(open()[0]?.dueAt ?? null),
      due: () => Promise.resolve(open()),
      remind: () => Promise.resolve(0),
      withDigest: (digest: Uint8Array) => Promise.resolve(open().find(one => Buffer.compare(one.digest, digest) === 0)),
    },
    executions: {
      resolve(_organizationId: string, jobId: string, how: unknown) {
        if (jobId === refused) return Promise.reject(new Error('its execution cannot be read'))
        if (ended.has(jobId)) return Promise.resolve(false)
        ended.set(jobId, how)
        return Promise.resolve(true)
      },
    },
  } as unknown as Pick<Store, 'waits' | 'executions'>
  const key = createSecretKey(Buffer.alloc(32))
  const log = openLog('info', line => logged.push(line))
  return { waits: openWaits({ store, key, log, clock: { now: () => 100 } }), all, ended, logged }
}

test('a wait that cannot be read fails, and the others end as they should', async () => {
  const { waits, ended, logged } = opened([
    { request: '{' },
    { request: '{"title":"x","default":{"approved":true}}' },
    { awaits: 'time', request: '{"seconds":0}' },
    {},
  ])
  waits.start()
  await expect.poll(() => ended.size).toBe(4)
  await waits.close()
  expect(ended.get('job_0')).toMatchObject({ error: { code: 'internal_error' } })
  expect(ended.get('job_1')).toMatchObject({ result: expect.stringContaining('"approved":true') })
  expect(ended.get('job_2')).toMatchObject({ awaits: 'time', result: '{"at":0}' })
  expect(ended.get('job_3')).toMatchObject({ error: { code: 'timeout' } })
  expect(logged.join('')).toContain('A wait could not be ended as usual')
})

test('a wait that cannot be ended at all does not hold up the others', async () => {
  const { waits, ended, logged } = opened([{}, { awaits: 'time', request: '{"seconds":0}' }], 'job_0')
  waits.start()
  await expect.poll(() => ended.size).toBe(1)
  await waits.close()
  expect(ended.get('job_1')).toMatchObject({ result: '{"at":0}' })
  expect(logged.filter(line => line.includes('Waits could not be ended'))).toHaveLength(1)
})

test('a token belongs to one job, and no other token finds its wait', async () => {
  const { waits, all } = opened([{}, { awaits: 'time' }, { request: '{"title":"x","approvers":["a"]}' }])
  const [first, time, named] = all as [Wait, Wait, Wait]
  expect([waits.tokenOf(time), waits.tokenOf(named)]).toEqual([null, null])
  expect(waits.tokenOf(first)).not.toBe(waits.tokenOf({ ...first, jobId: 'job_9' }))
  expect(await waits.withToken(waits.tokenOf(first)!)).toBeUndefined()
  expect(await waits.withToken('')).toBeUndefined()
})

test.each([
  [undefined, { tokenName: 'any', email: null }, true],
  [['deploy'], { tokenName: 'deploy', email: null }, true],
  [['deploy'], { tokenName: 'Deploy', email: null }, false],
  [['Ada@Example.com'], { tokenName: 'x', email: 'ada@example.com' }, true],
  [['ada@example.com'], { tokenName: 'x', email: null }, false],
  [['a', 'b'], { tokenName: 'c', email: 'd' }, false],
])('approvers %j and %j: %s', (approvers, approver, may) => {
  const { waits } = opened([])
  expect(waits.mayAnswer({ request: JSON.stringify({ title: 'x', approvers }) }, approver)).toBe(may)
})

import { expect, test } from 'vitest'
import type { ExecutionRecord } from '../../../core/store/workflows.ts'
import { openFrozen } from '../../../core/workflows/frozen.ts'

const execution = (id: string, text = '') => ({
  id,
  organizationId: 'org',
  createdAt: 1,
  inputParams: { text },
  definition: {
    name: 'x',
    description: null,
    region: 'Global' as const,
    timeout: 1,
    onFailure: 'fail_fast' as const,
    parameters: null,
    dag: { nodes: {}, edges: [] },
  },
})

test('the latest are kept, however many come and however large they are; others are read again', async () => {
  const asked: string[] = []
  const frozen = openFrozen({
    find(_, id) {
      asked.push(id)
      return Promise.resolve(id === 'gone' ? undefined : (execution(id) as unknown as ExecutionRecord))
    },
  })
  for (let at = 0; at < 300; at++) frozen.keep(execution(`n${at}`))
  expect([frozen.known('n0'), frozen.known('n299')?.id]).toEqual([undefined, 'n299'])
  expect((await frozen.of('org', 'n0'))?.id).toBe('n0')
  expect((await frozen.of('org', 'n0'))?.id).toBe('n0')
  expect(await frozen.of('org', 'gone')).toBeUndefined()
  expect(asked).toEqual(['n0', 'gone'])
  // Each of a third of what may be kept in all.
  const large = 'x'.repeat(22 << 20)
  for (let at = 0; at < 5; at++) frozen.keep(execution(`large${at}`, large))
  expect([0, 1, 2, 3, 4].map(at => frozen.known(`large${at}`) !== undefined)).toEqual([false, false, false, true, true])
  expect(frozen.known('n299')).toBeUndefined()
})

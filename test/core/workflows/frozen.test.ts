import { expect, test } from 'vitest'
import type { ExecutionRecord } from '../../../core/store/workflows.ts'
import { openFrozen } from '../../../core/workflows/frozen.ts'

const execution = (id: string, text = '') => ({
  id,
  organizationId: 'org',
  createdAt: 1,
  origin: '',
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
    results: () => Promise.reject(new Error('not asked here')),
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

test('what a node gave is not read back for the nodes after it, unless it is long, or the execution is over', async () => {
  const asked: string[][] = []
  const frozen = openFrozen({
    find: () => Promise.resolve(undefined),
    results(_, __, nodes) {
      asked.push([...nodes])
      return Promise.resolve(
        Object.fromEntries(nodes.map(node => [node, { status: 'completed' as const, result: '"read"', error: null }])),
      )
    },
  })
  const kept = frozen.keep(execution('e'))
  const said = async (...nodes: string[]) =>
    Object.entries(await frozen.results(kept, nodes)).map(
      ([node, { result }]) => `${node} ${typeof result === 'string' ? result : 'none'}`,
    )
  frozen.keepResult('e', 'a', '"kept"')
  frozen.keepResult('e', 'long', 'x'.repeat(100_000))
  frozen.keepResult('another', 'b', '"kept"')
  expect(await said('a')).toEqual(['a "kept"'])
  expect(asked).toEqual([])
  expect(await said('a', 'long', 'b')).toEqual(['a "kept"', 'long "read"', 'b "read"'])
  expect(asked).toEqual([['long', 'b']])
  frozen.drop('e')
  expect(await said('a')).toEqual(['a "read"'])
})

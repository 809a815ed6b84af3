import { expect, test } from 'vitest'
import type { ExecutionRecord } from '../../../core/store/workflows.ts'
import { openDefinitionSnapshots } from '../../../core/workflows/definition-snapshots.ts'

const execution = (id: string, text = '') => ({
  id,
  organizationId: 'org',
  createdAt: 1,
  origin: '',
  inputParams: { text },
  definition: {
    name: 'x',
    description: null,
    tags: [],
    region: 'Global' as const,
    timeout: 1,
    onFailure: 'fail_fast' as const,
    parameters: null,
    dag: { nodes: {}, edges: [] },
  },
})

test('the latest are kept within a bound on their size; others are read again', async () => {
  const asked: string[] = []
  const snapshots = openDefinitionSnapshots({
    results: () => Promise.reject(new Error('not asked here')),
    find(_, id) {
      asked.push(id)
      return Promise.resolve(id === 'gone' ? undefined : (execution(id) as unknown as ExecutionRecord))
    },
  })
  for (let at = 0; at < 300; at++) snapshots.keep(execution(`n${at}`))
  expect([snapshots.known('n0'), snapshots.known('n299')?.id]).toEqual([undefined, 'n299'])
  expect((await snapshots.of('org', 'n0'))?.id).toBe('n0')
  expect((await snapshots.of('org', 'n0'))?.id).toBe('n0')
  expect(await snapshots.of('org', 'gone')).toBeUndefined()
  expect(asked).toEqual(['n0', 'gone'])
  // Each of a third of the bound.
  const large = 'x'.repeat(22 << 20)
  for (let at = 0; at < 5; at++) snapshots.keep(execution(`large${at}`, large))
  expect([0, 1, 2, 3, 4].map(at => snapshots.known(`large${at}`) !== undefined)).toEqual([
    false,
    false,
    false,
    true,
    true,
  ])
  expect(snapshots.known('n299')).toBeUndefined()
})

test('the result of a node is not read back for its successors, unless it is long, or the execution has ended', async () => {
  const asked: string[][] = []
  const snapshots = openDefinitionSnapshots({
    find: () => Promise.resolve(undefined),
    results(_, __, nodes) {
      asked.push([...nodes])
      return Promise.resolve(
        Object.fromEntries(nodes.map(node => [node, { status: 'completed' as const, result: '"read"', error: null }])),
      )
    },
  })
  const kept = snapshots.keep(execution('e'))
  const said = async (...nodes: string[]) =>
    Object.entries(await snapshots.results(kept, nodes)).map(
      ([node, { result }]) => `${node} ${typeof result === 'string' ? result : 'none'}`,
    )
  snapshots.keepResult('e', 'a', '"kept"')
  snapshots.keepResult('e', 'long', 'x'.repeat(100_000))
  snapshots.keepResult('another', 'b', '"kept"')
  expect(await said('a')).toEqual(['a "kept"'])
  expect(asked).toEqual([])
  expect(await said('a', 'long', 'b')).toEqual(['a "kept"', 'long "read"', 'b "read"'])
  expect(asked).toEqual([['long', 'b']])
  snapshots.drop('e')
  expect(await said('a')).toEqual(['a "read"'])
})

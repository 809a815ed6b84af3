import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import type { ExecutionNode } from '../../../core/store/workflows.ts'
import type { RetryFrom } from '../../../core/workflows/kept-work.ts'
import { type NodeChange, planRetry } from '../../../core/workflows/retry.ts'

const node = (inputs: object, more: object = {}) => ({ model_id: 'm', task: 'std/chat-completion', inputs, ...more })
const dag = Dag.parse({
  nodes: {
    a: node({ prompt: 'one', seed: 1 }),
    b: node({ prompt: '${nodes.a.result.id}' }),
    pinned: node({ prompt: '${nodes.b.result.id}' }, { pin: { id: 'given' } }),
    c: node({ prompt: '${nodes.pinned.result.id}' }),
    d: node({ prompt: '${nodes.c.result.id}' }),
  },
})
/** `d` has failed. */
const nodes = Object.keys(dag.nodes).map(nodeId => ({
  nodeId,
  status: nodeId === 'd' ? 'failed' : 'completed',
  jobId: nodeId === 'pinned' ? null : `job of ${nodeId}`,
  items: null,
})) as unknown as ExecutionNode[]

const plan = (from: RetryFrom | undefined, changes: Record<string, NodeChange> = {}) =>
  planRetry({ id: 'exec', dag, nodes }, { from, changes })
const kept = (...given: Parameters<typeof plan>) => [...plan(...given).kept.reuse.keys()].join(' ')

test.each<[string, RetryFrom | undefined, Record<string, NodeChange>, string]>([
  ['what has failed runs again', undefined, {}, 'a b c'],
  ['from the start nothing is kept', 'start', {}, ''],
  ['from a node: those after it, up to a pinned one', { node: 'a' }, {}, 'c'],
  ['from a pinned node: it runs, and those after it', { node: 'pinned' }, {}, 'a b'],
  ['a changed node runs, and those after it', undefined, { c: { inputs: { prompt: 'x' } } }, 'a b'],
  ['a changed pinned node runs', undefined, { pinned: { inputs: { prompt: 'x' } } }, 'a b'],
  ['a change after the node from which it runs', { node: 'b' }, { b: { model_id: 'other' } }, 'a c'],
])('%s', (_, from, changes, expected) => {
  expect(kept(from, changes)).toBe(expected)
})

const listed = Dag.parse({
  nodes: {
    a: node({ prompt: 'one' }),
    list: node({ prompt: '${item}' }, { for_each: '${nodes.a.result.ids}' }),
    other: node({ prompt: 'two' }),
    after: node({ prompt: '${nodes.list.result[*].id}' }),
  },
})
const items = { total: 9, completed: 4, failed: 1, running: 0 }
const ended = (statuses: Record<string, string>) =>
  Object.keys(listed.nodes).map(nodeId => ({
    nodeId,
    status: statuses[nodeId] ?? 'completed',
    jobId: `job of ${nodeId}`,
    items: nodeId === 'list' ? items : null,
  })) as unknown as ExecutionNode[]

test.each<[string, Record<string, string>, RetryFrom | undefined, Record<string, NodeChange>, string, string]>([
  ['a failed list runs for what is left', { list: 'failed', after: 'skipped' }, undefined, {}, 'a other', 'list'],
  ['a cancelled one too', { list: 'cancelled', after: 'cancelled' }, 'failed', {}, 'a other', 'list'],
  [
    'and one that another failure stopped',
    { list: 'skipped', other: 'failed', after: 'skipped' },
    'failed',
    {},
    'a',
    'list',
  ],
  ['a completed one with failed items too', { other: 'failed' }, undefined, {}, 'a', 'list'],
  ['from the start nothing is kept', { list: 'failed', after: 'skipped' }, 'start', {}, '', ''],
  ['from the list it runs whole', { list: 'failed', after: 'skipped' }, { node: 'list' }, {}, 'a other', ''],
  ['from a node before it too', { list: 'failed', after: 'skipped' }, { node: 'a' }, {}, 'other', ''],
  ['from a node beside it what is left', { list: 'failed', after: 'skipped' }, { node: 'other' }, {}, 'a', 'list'],
  ['with a change of it it runs whole', { list: 'failed', after: 'skipped' }, undefined, { list: {} }, 'a other', ''],
  ['also from what has failed', { list: 'failed', after: 'skipped' }, 'failed', { list: {} }, 'a other', ''],
  ['and from a node beside it', { list: 'failed', after: 'skipped' }, { node: 'other' }, { list: {} }, 'a', ''],
  [
    'after a failure that runs again it runs whole from a node beside it',
    { a: 'failed', list: 'failed', after: 'skipped' },
    { node: 'other' },
    {},
    '',
    '',
  ],
  ['with a change before it too', { list: 'failed', after: 'skipped' }, undefined, { a: {} }, 'other', ''],
  ['after a failure before it too', { a: 'failed', list: 'failed', after: 'skipped' }, undefined, {}, 'other', ''],
])('%s', (_, statuses, from, changes, reused, lists) => {
  const { kept } = planRetry({ id: 'exec', dag: listed, nodes: ended(statuses) }, { from, changes })
  expect([[...kept.reuse.keys()].join(' '), [...kept.lists].join(' ')]).toEqual([reused, lists])
})

test('inputs are replaced by name, null removes one, and the definition before stays', () => {
  const before = structuredClone(dag)
  const { dag: next } = plan(undefined, { a: { inputs: { seed: null, size: 3 }, model_id: 'other' } })
  expect(next.nodes.a).toMatchObject({ inputs: { prompt: 'one', size: 3 }, model_id: 'other' })
  expect(next.nodes.a!.inputs).not.toHaveProperty('seed')
  expect([next.nodes.b, dag]).toEqual([before.nodes.b, before])
})

test.each<[string, RetryFrom | undefined, Record<string, NodeChange>, string]>([
  ['changes.nodes.a', { node: 'c' }, { a: { inputs: { prompt: 'x' } } }, "The node 'a' keeps its result"],
  ['changes.nodes.a', 'failed', { a: {} }, "The node 'a' keeps its result"],
  ['changes.nodes.pinned', 'start', { pinned: {} }, "The node 'pinned' keeps its result"],
  ['changes.nodes.x', undefined, { x: {} }, "no node 'x'"],
  ['from', { node: 'bb' }, {}, "no node 'bb'"],
])('%s is refused', (param, from, changes, message) => {
  expect(() => plan(from, changes)).toThrow(
    expect.objectContaining({ param, message: expect.stringContaining(message) as string }),
  )
})

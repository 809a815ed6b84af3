import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { labelOf, type RunDisplay } from '../../../cli/executions/display.ts'
import type { Execution } from '../../../cli/executions/execution.ts'
import { afterEvent, type ExecutionSnapshot, unknownExecution } from '../../../cli/executions/follow.ts'
import { outputsOf, reportOutcome } from '../../../cli/executions/report-outcome.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'
import { graphOf } from '../../../core/workflows/graph.ts'

const node = (id: string, status: string, more: object = {}) => ({
  node_id: id,
  task: 'std/chat-completion',
  model_id: 'm',
  status,
  cached: false,
  ...more,
})
const event = (type: string, data: object) => ({ event: type, data: JSON.stringify({ type, data }) })
const snapshot = (...nodes: object[]) =>
  event('snapshot', { execution: { id: 'exec_1', status: 'running', created_at: 1, nodes } })
const ofNode = (what: string, id: string, more: object = {}) =>
  event(`workflow_execution.node.${what}`, { node_id: id, ...more })

/** The snapshot after these events, one event per second. */
function after(...events: { event: string; data: string }[]): ExecutionSnapshot {
  let run = unknownExecution
  for (const [at, one] of events.entries()) run = afterEvent(run, one, at * 1000) ?? run
  return run
}

test("states come from events, elapsed time from the client's clock", () => {
  const run = after(
    snapshot(node('a', 'ready'), node('b', 'pending'), node('c', 'pending')),
    ofNode('started', 'a'),
    ofNode('progress', 'x', { nodes: [node('a', 'running', { progress: 0.42 })] }),
    ofNode('completed', 'a'),
    ofNode('skipped', 'b'),
    ofNode('cached', 'c'),
    event('workflow_execution.completed', { execution: { status: 'completed' } }),
  )
  expect(run.status).toBe('completed')
  expect(run.nodes.get('a')).toMatchObject({ status: 'completed', since: 1000, until: 3000, progress: null })
  expect([...run.nodes.values()].map(({ status, cached }) => [status, cached])).toEqual([
    ['completed', false],
    ['skipped', false],
    ['completed', true],
  ])
})

test('a node with a list shows how many of its items have ended', () => {
  const items = { total: 100, completed: 33, failed: 1, running: 8 }
  const run = after(
    snapshot(node('a', 'ready')),
    ofNode('started', 'a'),
    ofNode('progress', 'x', { nodes: [node('a', 'running', { progress: 0.34, items })] }),
  )
  expect(labelOf(['a'], run, 5000).lines.map(line => line.trimEnd())).toEqual(['● a', '34 of 100'])
})

test('a node with a list waits when all of its items do, and not with the first of them', () => {
  const items = { total: 3, completed: 1, failed: 0, running: 1, waiting: 1 }
  const begun = [snapshot(node('a', 'ready')), ofNode('started', 'a'), ofNode('waiting', 'a', { item: 1 })]
  expect(after(...begun).nodes.get('a')).toMatchObject({ status: 'running' })
  const all = { items: { ...items, running: 0, waiting: 2 } }
  const run = after(...begun, ofNode('progress', 'x', { nodes: [node('a', 'waiting', all)] }))
  expect(labelOf(['a'], run, 5000).lines.map(line => line.trimEnd())).toEqual(['◔ a', 'waiting'])
})

test('late progress does not change the state of an ended node', () => {
  const run = after(
    snapshot(node('a', 'running')),
    ofNode('failed', 'a', { error: { code: 'worker_error', message: 'No.' } }),
    ofNode('progress', 'x', { nodes: [node('a', 'running', { progress: 0.9 })] }),
  )
  expect(run.nodes.get('a')).toMatchObject({ status: 'failed', error: 'No.' })
})

test('unknown events are ignored', () => {
  expect(afterEvent(unknownExecution, { event: 'x.y', data: '{"data":{}}' }, 0)).toBeUndefined()
  expect(afterEvent(unknownExecution, { event: 'snapshot', data: 'nonsense' }, 0)).toBeUndefined()
})

test.each<[string, object, [string, string]]>([
  ['pending', {}, ['○ a', '']],
  ['ready', { queue_position: 3 }, ['◌ a', '3 ahead']],
  ['ready', { queue_position: 0 }, ['◌ a', 'waiting']],
  ['running', {}, ['● a', '5 s']],
  ['running', { progress: 0.5 }, ['● a', '50 %']],
  ['completed', { duration_ms: 2_100 }, ['✓ a', '2.1 s']],
  ['completed', { duration_ms: 95_000 }, ['✓ a', '1 min']],
  ['completed', { cached: true }, ['✓ a', 'cached']],
  ['failed', {}, ['✗ a', 'failed']],
  ['timed_out', {}, ['✗ a', 'timed out']],
  ['skipped', {}, ['– a', 'skipped']],
])('a node that is %s, %j', (status, more, [name, state]) => {
  const { lines } = labelOf(['a'], after(snapshot(node('a', status, more))), 5000)
  expect(lines.map(line => line.trimEnd())).toEqual([name, state])
})

test('several nodes in one box: the number in each state', () => {
  const run = after(snapshot(node('a', 'completed'), node('b', 'running'), node('c', 'completed')))
  expect(labelOf(['a', 'b', 'c'], run, 0).lines.map(line => line.trimEnd())).toEqual(['3 more', '✓ 2 ● 1'])
})

const file = (name: string) => ({ url: `http://h/files/file-1/${name}?sig=x`, width: 1 })
const answer = { choices: [{ message: { content: 'words' } }] }
test.each<[name: string, output: { result: unknown; values: Record<string, unknown> }, made: object]>([
  ['an answer', { result: answer, values: {} }, { texts: ['words'], files: [] }],
  ['a completion', { result: { choices: [{ text: 'words' }] }, values: {} }, { texts: ['words'] }],
  ['vectors', { result: { data: [1] }, values: {} }, { texts: ['{"data":[1]}'] }],
  ['an output with a name', { result: {}, values: { a: 'x', b: 3, c: null } }, { texts: ['x', '3', 'null'] }],
  [
    'images and their seed',
    { result: { images: [file('a.png'), null], seed_used: 7 }, values: {} },
    { texts: [], files: [{ url: file('a.png').url, file_name: 'a.png' }], seed: 7 },
  ],
  [
    'the URL of an image alone',
    { result: { images: [{ url: file('a.png').url }] }, values: { 'images[0].url': file('a.png').url } },
    { texts: [], files: [{ file_name: 'a.png' }] },
  ],
  [
    'OpenAI-compatible images, whole',
    { result: { created: 1, data: [{ url: file('a.png').url }], images: [file('a.png')], seed_used: 7 }, values: {} },
    { texts: [], files: [{ file_name: 'a.png', width: 1 }], seed: 7 },
  ],
  [
    'and their URLs alone',
    { result: { data: [null, { url: file('b.png').url }] }, values: { 'data[1].url': file('b.png').url } },
    { texts: [], files: [{ file_name: 'b.png' }] },
  ],
  ['a video', { result: { video: file('a.mp4') }, values: {} }, { texts: [], files: [{ file_name: 'a.mp4' }] }],
  [
    'the texts of a list of results, null for an item that has failed',
    { result: [{ text: 'one' }, null, { text: 'three' }], values: {} },
    { texts: ['one', 'null', 'three'], files: [] },
  ],
  [
    'the files of a list of results',
    { result: [{ images: [file('a.png')] }, { images: [file('b.png')] }], values: {} },
    { texts: [], files: [{ file_name: 'a.png' }, { file_name: 'b.png' }] },
  ],
])('outputs: %s', (_, output, made) => {
  const execution = { outputs: { a: output, before: { result: answer, values: {} } } } as unknown as Execution
  const [one, ...others] = outputsOf(execution, ['before', 'a'], new Set(['a']))
  expect([one, others]).toMatchObject([made, []])
})

test.each([
  [undefined, 'a:\none\nb:\nx\r\ny\n'],
  ['b', 'x\r\ny\n'],
  ['before', 'zero\n'],
])(
  'of several nodes with outputs each is named, and a pipe gets them exactly; of the node %s',
  async (only, printed) => {
    const of = (text: string) => ({ result: { text }, values: {} })
    const outputs = { a: of('one'), b: of('x\r\ny'), before: of('zero') }
    const execution = { id: 'exec_1', status: 'completed', outputs } as unknown as Execution
    const stdout = new PassThrough()
    const terminal = openTerminal({ ...process, stdout: stdout as unknown as NodeJS.WriteStream, env: {} })
    const signal = AbortSignal.any([])
    const graph = graphOf(['a', 'b', 'before'], [{ from: 'before', to: 'a' }])
    const options = { graph, out: undefined, json: false, only }
    const display = { close: () => {} } as unknown as RunDisplay
    await reportOutcome(terminal, () => expect.fail(), execution, display, { cancel: signal, leave: signal }, options)
    expect(String(stdout.read())).toBe(printed)
  },
)

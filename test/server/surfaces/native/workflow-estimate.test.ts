import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
beforeAll(async () => {
  const price = { input_per_million_tokens: 100, output_per_million_tokens: 1_000 }
  app = await startApp({ models: [fakeModel('priced', [], { price }), fakeModel('free')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Estimate {
  cost: { median: number | null; p90: number | null; maximum: number | null; unknown_nodes: string[] }
  critical_path: { nodes: string[]; median_ms: number | null; unknown_nodes: string[] }
  nodes: {
    node_id: string
    model_id: string | null
    runs: number
    cost: { median: number | null; maximum: number | null }
    run_ms: { median: number | null }
  }[]
}
const chat = (model_id: string, content: string, more: object = {}) => ({
  model_id,
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }], max_tokens: 8 },
  ...more,
})
const dag = {
  nodes: {
    write: chat('priced', 'x ${input.word}'),
    read: chat('priced', '${nodes.write.result.choices[0].message.content}', { pin: {} }),
    free: chat('free', '${nodes.read.result.id}'),
    join: { task: 'text/template', inputs: { template: 'x ${nodes.free.result.id}' } },
    missing: chat('nowhere', 'x'),
  },
}

async function estimate(body: object, path = '/api/workflows/estimate'): Promise<Estimate> {
  const response = await app.fetch(path, { body })
  const answered = (await response.json()) as { estimate: Estimate }
  expect([response.status, answered]).toEqual([200, expect.objectContaining({ estimate: expect.anything() as object })])
  return answered.estimate
}
const node = ({ nodes }: Estimate, id: string) => nodes.find(({ node_id }) => node_id === id)!

test('before any run only prices are known, and what is unknown is null', async () => {
  const found = await estimate({ dag, input_params: { word: 'cat' } })
  expect(node(found, 'write')).toMatchObject({ runs: 0, cost: { median: null }, run_ms: { median: null } })
  // 8 tokens of the answer, and at most one token for each character of the inputs.
  expect(node(found, 'write').cost.maximum).toBeGreaterThan(0.008)
  expect(node(found, 'write').cost.maximum).toBeLessThan(0.03)
  expect(node(found, 'read').cost.maximum).toBeNull()
  for (const id of ['free', 'join']) expect(node(found, id).cost).toEqual({ median: 0, p90: 0, maximum: 0 })
  expect(node(found, 'missing')).toMatchObject({ model_id: 'nowhere', cost: { median: null, maximum: null } })
  expect(found.cost).toMatchObject({ median: 0, maximum: null, unknown_nodes: ['write', 'read', 'missing'] })
  expect(found.critical_path.unknown_nodes).toContain('write')
  // A parameter that is not given may be of any length.
  expect(node(await estimate({ dag }), 'write').cost.maximum).toBeNull()
})

test('afterwards cost and time are those of the runs of the organization', async () => {
  const costs: number[] = []
  for (const word of ['a', 'b', 'c']) {
    const begun = await app.fetch('/api/workflows/run', { body: { dag, to: 'write', input_params: { word } } })
    const { execution } = (await begun.json()) as { execution: { id: string } }
    const ended = await app.fetch(`/api/workflow-executions/${execution.id}?wait=60`)
    costs.push(((await ended.json()) as { execution: { cost: number } }).execution.cost)
  }
  const found = await estimate({ dag, to: 'read' })
  const median = costs.toSorted((a, b) => a - b)[1]
  expect(median).toBeGreaterThan(0)
  for (const id of ['write', 'read']) expect(node(found, id)).toMatchObject({ runs: 3, cost: { median } })
  expect(found.cost).toMatchObject({ median: expect.closeTo(2 * median!, 9) as number, unknown_nodes: [] })
  expect(found.critical_path).toMatchObject({ nodes: ['write', 'read'], unknown_nodes: [] })
  expect(found.critical_path.median_ms).toBe(2 * node(found, 'write').run_ms.median!)
})

test('of a stored workflow, with its pins where asked', async () => {
  const stored = await app.fetch('/api/workflows', { body: { name: 'Estimated', dag } })
  const { workflow } = (await stored.json()) as { workflow: { id: string } }
  const path = `/api/workflows/${workflow.id}/estimate`
  const ids = async (body: object) => (await estimate(body, path)).nodes.map(({ node_id }) => node_id)
  expect(await ids({ to: 'free' })).toEqual(['write', 'read', 'free'])
  expect(await ids({ to: 'free', use_pins: true })).toEqual(['free'])
  const circle = {
    nodes: { a: chat('free', 'x'), b: chat('free', 'x') },
    edges: [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'a' },
    ],
  }
  const refused = await app.fetch('/api/workflows/estimate', { body: { dag: circle } })
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: 'invalid_graph' } }])
})

test('a node with a list is estimated for one item, and for as many as there are or may be', async () => {
  const each = (for_each: unknown) => ({ ...chat('priced', 'x'), for_each, max_items: 40 })
  const nodes = { some: each(['a', 'b', 'c']), given: each('${input.list}'), other: each('${nodes.some.result}') }
  const found = await estimate({ dag: { nodes }, input_params: { list: [1, 2] } })
  const items = found.nodes.map(
    one => (one as unknown as { items: { count: number; cost: { maximum: number } } }).items,
  )
  expect(items.map(({ count }) => count)).toEqual([3, 2, null])
  const { maximum } = found.nodes[0]!.cost
  expect(items[0]!.cost.maximum).toBeCloseTo(3 * maximum!, 9)
  expect(items[2]!.cost.maximum).toBeCloseTo(40 * maximum!, 9)
})

import { expect, test } from 'vitest'
import type { JsonSchema } from '../../../../../../../server/console/app/api/schema.ts'
import { graphOf } from '../../../../../../../server/console/app/pages/editor/document/graph.ts'
import {
  namedWorkflows,
  schemaOfParameters,
  workflowOptions,
} from '../../../../../../../server/console/app/pages/editor/document/nested.ts'
import { type Offer, offersFor } from '../../../../../../../server/console/app/pages/editor/document/offers.ts'
import { parseWorkflow } from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

test('the parameters of a workflow become a schema for the form of a node that runs it', () => {
  const parameters = {
    topic: { type: 'string', description: 'About what' },
    picture: { type: 'image', required: false },
    size: { type: 'integer', default: 1, minimum: 0, maximum: 9 },
    tone: { type: 'string', enum: ['kind', 'short'] },
  }
  expect(schemaOfParameters(parameters)).toEqual({
    type: 'object',
    properties: {
      topic: { type: 'string', description: 'About what' },
      picture: { type: 'string' },
      size: { type: 'integer', minimum: 0, maximum: 9 },
      tone: { enum: ['kind', 'short'] },
    },
    required: ['topic', 'tone'],
  })
})

test('a workflow is chosen by its name, and by its id where the name is not enough', () => {
  const [a, b, c] = ['Report', 'Twin', 'Twin'].map((name, at) => ({ id: `wf_${at}`, name })) as [Named, Named, Named]
  expect(workflowOptions([a, b, c], '').map(({ id }) => id)).toEqual(['Report', 'wf_1', 'wf_2'])
  expect(workflowOptions([a], 'wf_0')).toEqual([{ id: 'wf_0', name: 'Report (wf_0)' }])
  expect(workflowOptions([a], 'Gone').map(({ id }) => id)).toEqual(['Gone', 'Report'])
  // One that the search did not find has its name all the same.
  expect(workflowOptions([a], 'wf_2', c)[0]).toEqual({ id: 'wf_2', name: 'Twin (wf_2)' })
})
type Named = { id: string; name: string }

const object = (properties: Record<string, JsonSchema>): JsonSchema => ({ type: 'object', properties })
const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
const schemas: Record<string, JsonSchema> = {
  'text/split': object({ chunks: list(object({ text: { type: 'string' } })), total: { type: 'integer' } }),
  // Its choices are in a definition of its own.
  'std/completion': {
    ...object({ id: { type: 'string' }, choices: list({ $ref: '#/$defs/Choice' }) }),
    $defs: { Choice: object({ text: { type: 'string' }, index: { type: 'integer' } }) },
  },
  'workflow/run': { type: 'object' },
}
const tasks = new Map(
  Object.entries(schemas).map(([id, output_schema]) => [
    id,
    { id, category: 'text', media_fields: [], input_schema: { type: 'object' }, output_schema },
  ]),
) as never

const stored = parseWorkflow(`dag:
  nodes:
    split: { task: text/split, inputs: {} }
    each: { task: std/completion, for_each: '\${nodes.split.result.chunks}', outputs: ['[*].choices[0].text'] }
    write: { task: std/completion, outputs: ['choices[1].text', result.id] }
`).workflow.nodes

const { workflow } = parseWorkflow(`name: Outer
dag:
  nodes:
    run: { task: workflow/run, inputs: { workflow: Inner } }
    many: { task: workflow/run, for_each: [1, 2], inputs: { workflow: Inner } }
    unknown: { task: workflow/run, inputs: { workflow: '\${input.which}' } }
    parts: { task: std/completion, for_each: '\${nodes.run.result.split.result.chunks}', inputs: {} }
    ofMany: { task: std/completion, for_each: '\${nodes.many.result[*].split.result.total}', inputs: {} }
    last: { task: std/completion, inputs: { prompt: '' } }
`)
const nested = new Map([
  ['run', stored],
  ['many', stored],
])
const offers = offersFor(workflow, tasks, 'last', 'value', nested)
const of = (id: string) => offers.nodes.find(node => node.id === id)!
const references = (some: readonly Offer[]): string[] =>
  some.flatMap(({ reference, children }) => [reference, ...references(children)])

test('of a node that runs a workflow is offered what the nodes of that workflow keep', () => {
  expect(references(of('run').all)).toEqual([
    '${nodes.run.result.split}',
    '${nodes.run.result.split.result}',
    '${nodes.run.result.split.result.chunks}',
    '${nodes.run.result.split.result.chunks[*]}',
    '${nodes.run.result.split.result.chunks[*].text}',
    '${nodes.run.result.split.result.chunks[0]}',
    '${nodes.run.result.split.result.chunks[0].text}',
    '${nodes.run.result.split.result.total}',
    '${nodes.run.result.each}',
    '${nodes.run.result.each.result[*].choices[0].text}',
    '${nodes.run.result.write}',
    '${nodes.run.result.write.result.choices[1].text}',
    '${nodes.run.result.write.result.id}',
  ])
  const [, each, write] = of('run').all
  expect(each!.children.map(({ label, kind }) => [label, kind])).toEqual([['result[*].choices[0].text', 'list']])
  expect(write!.children.map(({ label, kind }) => [label, kind])).toEqual([
    ['result.choices[1].text', 'text'],
    ['result.id', 'text'],
  ])
})

test('the value that people mostly want is that of the last node', () => {
  expect(of('run').main!.reference).toBe('${nodes.run.result.write.result.choices[1].text}')
  expect(of('many').main!.reference).toBe('${nodes.many.result[*].write.result.choices[1].text}')
  expect(of('many').main!.kind).toBe('list')
  expect(references(of('many').all)).toContain('${nodes.many.result[0].split.result.total}')
})

test('the result of a workflow that is not known is offered as a whole', () => {
  expect([of('unknown').main!.reference, ...references(of('unknown').all)]).toEqual([
    '${nodes.unknown.result}',
    '${nodes.unknown.result}',
  ])
})

test('lists of nested workflows are offered as lists, and their items are known', () => {
  const lists = offersFor(workflow, tasks, 'last', 'list', nested).nodes.find(({ id }) => id === 'run')!
  expect(lists.all.map(({ label }) => label)).toContain('split.result.chunks')
  expect(lists.all.map(({ label }) => label)).not.toContain('split.result.total')
  const itemsOf = (id: string) => offersFor(workflow, tasks, id, 'value', nested).item
  expect(references(itemsOf('parts'))).toEqual(['${item}', '${item.text}', '${index}'])
  expect(itemsOf('ofMany')[0]!.kind).toBe('integer')
})

test('its card shows the same values', () => {
  const card = (id: string, expanded: string[] = []) =>
    graphOf(workflow, tasks, new Set(expanded), false, nested).cards.find(one => one.id === id)!.ports.outputs
  expect(card('run').map(({ path }) => path)).toContain('write.result.choices[1].text')
  expect(card('run', ['out run']).find(({ path }) => path === 'write.result.id')!.branch).toEqual({
    label: 'result.id',
    depth: 1,
  })
  expect(card('unknown').map(({ path }) => path)).toEqual([''])
})

test('each workflow is looked up once, and none that only a run knows', () => {
  const run = (id: string, inputs: object) => ({ id, task: 'workflow/run', inputs: inputs as Record<string, unknown> })
  expect(
    namedWorkflows([
      run('a', { workflow: 'Inner' }),
      run('b', { workflow: 'Inner' }),
      run('c', { workflow: 'Inner', version: 2 }),
      run('d', { workflow: '${input.which}' }),
      run('e', { workflow: 'Inner', version: '${input.version}' }),
      run('f', { workflow: '' }),
      { id: 'g', task: 'std/completion', inputs: { workflow: 'Inner' } },
    ]),
  ).toEqual([
    { name: 'Inner', version: undefined, by: ['a', 'b'] },
    { name: 'Inner', version: 2, by: ['c'] },
  ])
  const many = Array.from({ length: 40 }, (_, at) => run(`n${at}`, { workflow: `W${at}` }))
  expect(namedWorkflows(many)).toHaveLength(30)
})

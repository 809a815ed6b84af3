import { expect, test } from 'vitest'
import { tasks } from '../../../../../../../core/schemas/task.ts'
import {
  otherProblems,
  problemAt,
  problemOfRefusal,
  problemsOf,
} from '../../../../../../../server/console/app/pages/editor/document/diagnostics.ts'
import { graphOf } from '../../../../../../../server/console/app/pages/editor/document/graph.ts'
import {
  changed,
  openHistory,
  redone,
  undone,
} from '../../../../../../../server/console/app/pages/editor/document/history.ts'
import {
  downstreamOf,
  upstreamOf,
  valueLinksOf,
} from '../../../../../../../server/console/app/pages/editor/document/references.ts'
import {
  fieldKind,
  firstInputs,
  inputPorts,
  leavesOf,
  mainOutput,
  outputFields,
  shapeOf,
} from '../../../../../../../server/console/app/pages/editor/document/schema.ts'
import { parseWorkflow } from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'
import { schemasOfTask } from '../../../../../../../server/views/task-schemas.ts'

const text = `name: A
dag:
  nodes:
    a: { task: std/completion, inputs: { prompt: '\${input.x}' } }
    b:
      task: std/completion
      inputs:
        prompt: '\${nodes.a.result.choices[0].text} \${nodes.a.status}'
    c: { task: std/completion, inputs: {} }
  edges: [{ from: b, to: c }]
`

test('links and the nodes before a node follow from references and edges', () => {
  const { workflow } = parseWorkflow(text)
  expect(valueLinksOf(workflow).map(({ from, output, to, input }) => [from, output, to, input.join('.')])).toEqual([
    [undefined, 'x', 'a', 'prompt'],
    ['a', 'choices[0].text', 'b', 'prompt'],
    ['a', 'status', 'b', 'prompt'],
  ])
  expect([...upstreamOf(workflow, 'c')]).toEqual(['b', 'a'])
  expect([...downstreamOf(workflow, 'a')].toSorted()).toEqual(['b', 'c'])
  expect([...downstreamOf(workflow, 'c')]).toEqual([])
})

test.each([
  ['a: [', 1, /./],
  ['- a', 1, /must be a mapping/],
  ['name: a\nname: b', 2, /unique/],
  ['', 1, /must be a mapping/],
])('faults of %j have a line and leave an empty workflow', (faulty, line, message) => {
  const { faults, workflow, value } = parseWorkflow(faulty)
  expect(faults[0]!.line).toBe(line)
  expect(faults[0]!.message).toMatch(message)
  expect([workflow.nodes, value]).toEqual([[], undefined])
})

test('wrong types in a text leave out what cannot be shown', () => {
  const { workflow } = parseWorkflow(
    'name: 1\nparameters: [1]\ndag: { nodes: { a: 1, b: { inputs: x } }, edges: [1, {}] }',
  )
  expect(workflow).toMatchObject({
    name: '',
    edges: [],
    nodes: [
      { id: 'a', task: '' },
      { id: 'b', inputs: {} },
    ],
  })
})

test('findings get the line of the place that they are about', () => {
  const message = 'Wrong.'
  const severity = 'error'
  const findings = [
    { severity, message, node_id: 'b', path: 'inputs.prompt' },
    { severity, message, node_id: 'b', path: 'inputs.missing' },
    { severity, message, path: 'parameters.x' },
    { severity, message, edge: { from: 'c', to: 'a' } },
    { severity, message, nodes: ['a', 'b'] },
  ] as const
  expect(
    problemsOf(
      findings.map(one => ({ ...one, nodes: 'nodes' in one ? [...one.nodes] : [] })),
      text,
    ).map(({ line }) => line),
  ).toEqual([8, 7, 1, 9, 4])
  expect(problemOfRefusal(message, 'dag.nodes.b.task', text)).toEqual({
    severity,
    message,
    node: 'b',
    field: 'task',
    line: 6,
  })
  expect(problemOfRefusal(message, 'timeout', text)).toEqual({ severity, message, field: 'timeout', line: 1 })
})

test('a problem is shown at the field that it is about, and at the node if there is none', () => {
  const problem = (message: string, field?: string, node?: string) =>
    ({ severity: 'error', message, node, field, line: 1 }) as const
  const problems = [
    problem('list', 'for_each', 'a'),
    problem('pin', 'pin.choices[0]', 'a'),
    problem('output', 'outputs[2]', 'a'),
    problem('other', 'for_each_other', 'a'),
    problem('node', undefined, 'a'),
    problem('limit', 'concurrency.limit'),
    problem('default', 'parameters.x.default'),
  ]
  const [node, parameter] = [
    ['dag', 'nodes', 'a'],
    ['parameters', 'x'],
  ] as const
  expect(
    (['for_each', 'pin', 'outputs', 'note'] as const).map(member => problemAt(problems, node, member)?.message),
  ).toEqual(['list', 'pin', 'output', undefined])
  expect(problemAt(problems, ['dag', 'nodes', 'b'], 'for_each')).toBeUndefined()
  expect(problemAt(problems, [], 'concurrency.limit')?.message).toBe('limit')
  expect(problemAt(problems, parameter, 'default')?.message).toBe('default')
  const others = otherProblems(problems, 'a', ['for_each', 'pin', 'outputs'])
  expect(others.map(({ message }) => message)).toEqual(['other', 'node'])
})

test('every task has inputs to fill in, outputs to drag, and a main output', () => {
  const main = Object.fromEntries(
    tasks.map(task => {
      const { input, output } = schemasOfTask(task)
      const inputs = firstInputs(input)
      expect(inputPorts(input, inputs, [], false).length, task).toBeGreaterThan(0)
      const outputs = outputFields(output)
      // What it gives depends on the workflow: references and `outputs` make its ports.
      if (task !== 'workflow/run') expect(leavesOf(outputs).length, task).toBeGreaterThan(0)
      return [task, mainOutput(outputs)?.path.join('.')]
    }),
  )
  expect(main).toMatchObject({
    'std/chat-completion': 'choices.0.message.content',
    'std/completion': 'choices.0.text',
    'std/embeddings': 'data.0.embedding',
    'std/audio-speech': 'audio_url',
    'std/audio-transcription': 'text',
    'slug/text-to-image': 'images.0.url',
    'slug/text-to-video': 'video.url',
  })
  const chat = firstInputs(schemasOfTask('std/chat-completion').input)
  expect(inputPorts(schemasOfTask('std/chat-completion').input, chat, [], false).map(({ path }) => path)).toEqual([
    ['messages', 0, 'content'],
  ])
})

test('undo and redo go through the changes, and letters of one field are one step', () => {
  let history = openHistory('a')
  history = changed(history, 'ab', 1_000, 'name')
  history = changed(history, 'abc', 1_500, 'name')
  history = changed(history, 'abcd', 9_000, 'name')
  expect(undone(history).present).toBe('abc')
  expect(undone(undone(history)).present).toBe('a')
  expect(undone(undone(undone(history))).present).toBe('a')
  expect(redone(undone(undone(history))).present).toBe('abc')
  expect(changed(undone(history), 'x', 9_100).future).toEqual([])
})

test('a time limit or budget that is no number is shown as it is', () => {
  const { workflow } = parseWorkflow(
    'timeout: soon\nbudget: 2.5\ndag: { nodes: { a: { timeout: later, budget: low } } }',
  )
  const [node] = workflow.nodes
  expect([workflow.timeout, workflow.budget, node!.timeout, node!.budget]).toEqual(['soon', 2.5, 'later', 'low'])
})

test('a message of a chat may have every role', () => {
  const { input } = schemasOfTask('std/chat-completion')
  const messages = shapeOf(shapeOf(input, input).properties.messages!, input)
  const { role } = shapeOf(messages.items!, input).properties
  expect(shapeOf(role!, input).values).toEqual(expect.arrayContaining(['system', 'user', 'assistant', 'tool']))
})

test.for([
  ['-', ['number'], 'number'],
  ['${input', ['integer'], 'integer'],
  ['${input.a}', ['choice'], 'text'],
  ['a', ['choice'], 'choice'],
  ['a', ['list', 'text'], 'text'],
  [1, ['text', 'integer'], 'integer'],
] as const)('the field of %j with a schema of %j is one for %s', ([value, kinds, field]) => {
  expect(fieldKind(value, kinds)).toBe(field)
})

test.for([
  'parameters: { a: 3, b: { type: [x], enum: 5, description: {} } }',
  'parameters: [1]',
  'dag: 3',
  'dag: { nodes: { a: { task: 5, inputs: [1], outputs: 2, retries: 3 }, b: 5 }, edges: [{ from: a }, 3] }',
  'dag: { nodes: { __proto__: { task: x, inputs: { prompt: "${nodes.__proto__.result}" } } } }',
  'dag: &a { nodes: *a }',
])('an unfinished text is shown as far as it can be: %s', unfinished => {
  const { workflow } = parseWorkflow(unfinished)
  for (const { parameter } of workflow.parameters) {
    expect(Array.isArray(parameter.enum ?? [])).toBe(true)
    expect(typeof (parameter.description ?? '')).toBe('string')
  }
  const { cards } = graphOf(workflow, new Map(), new Set(), false)
  expect(cards.filter(({ node }) => node)).toHaveLength(workflow.nodes.length)
})

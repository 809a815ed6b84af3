import { expect, test } from 'vitest'
import {
  addEdge,
  addNode,
  connect,
  disconnect,
  duplicateNode,
  type Edit,
  moveNode,
  removeEdge,
  removeNodes,
  removeParameter,
  renameNode,
  renameParameter,
  setParameterType,
  setValue,
} from '../../../../../../../server/console/app/pages/editor/document/edits.ts'
import { upstreamOf } from '../../../../../../../server/console/app/pages/editor/document/references.ts'
import { insertWorkflow, sourceOf } from '../../../../../../../server/console/app/pages/editor/document/source.ts'
import {
  documentText,
  parseWorkflow,
  readDocument,
} from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const source = `# A story and its picture
name: Story
parameters:
  topic: { type: string } # what it is about
dag:
  nodes:

    # The author
    write:
      model_id: infer/tiny-chat
      task: std/chat-completion
      inputs:
        messages:
          - role: user
            content: "Write about \${input.topic}." # polite
    paint:
      model_id: infer/demo
      task: slug/text-to-image
      inputs: { prompt: '\${nodes.write.result.choices[0].message.content}', seed: 1 }
  edges:
    - { from: write, to: paint }
`

function edited(edit: Edit, text = source): string {
  const { document } = parseWorkflow(text)
  edit(document)
  return documentText(document, text)
}
/** Lines that an edit removes and adds. */
function changes(edit: Edit, text = source): string[] {
  const [before, after] = [text.split('\n'), edited(edit, text).split('\n')]
  return [
    ...before.filter(line => !after.includes(line)).map(line => `-${line.trim()}`),
    ...after.filter(line => !before.includes(line)).map(line => `+${line.trim()}`),
  ]
}

test('a renamed node is renamed in conditions and defaults too', () => {
  const nodes = {
    ask: { task: 'std/chat-completion', inputs: {} },
    cats: { task: 't', inputs: {}, when: { all: [{ value: '${nodes.ask.result.label}', equals: 'cat' }] } },
    all: { task: 't', inputs: {}, defaults: { 'nodes.ask.result.label': 1, '${nodes.ask.result.text}': 2 } },
  }
  const { document } = parseWorkflow(JSON.stringify({ name: 'x', dag: { nodes } }))
  renameNode('ask', 'the judge')(document)
  const { value, workflow } = readDocument(document, '')
  expect(value).toMatchObject({
    dag: {
      nodes: {
        cats: { when: { all: [{ value: '${nodes["the judge"].result.label}', equals: 'cat' }] } },
        all: { defaults: { 'nodes["the judge"].result.label': 1, '${nodes["the judge"].result.text}': 2 } },
      },
    },
  })
  expect(upstreamOf(workflow, 'cats')).toEqual(new Set(['the judge']))
})

test('a document without an edit keeps every character', () => {
  expect(edited(() => {})).toBe(source)
})

const content = ['messages', 0, 'content'] as const
test.each<[string, Edit, string[]]>([
  ['sets a field', setValue(['description'], 'For children'), ['+description: For children']],
  [
    'keeps the comment and the quotes of a changed value',
    setValue(['dag', 'nodes', 'write', 'inputs', ...content], 'Write.'),
    ['-content: "Write about ${input.topic}." # polite', '+content: "Write." # polite'],
  ],
  [
    'sets a field of a missing mapping',
    setValue(['dag', 'nodes', 'write', 'retries', 'max'], 3),
    ['+retries:', '+max: 3'],
  ],
  [
    'removes a field',
    setValue(['dag', 'nodes', 'paint', 'inputs', 'seed'], undefined),
    [
      "-inputs: { prompt: '${nodes.write.result.choices[0].message.content}', seed: 1 }",
      "+inputs: { prompt: '${nodes.write.result.choices[0].message.content}' }",
    ],
  ],
  ['moves a node', moveNode('write', 10.4, -3), ['+position: { x: 10, y: -3 }']],
  [
    'adds a node',
    addNode('speak', { task: 'std/audio-speech', inputs: { input: '' } }),
    ['+speak:', '+task: std/audio-speech', '+input: ""'],
  ],
  [
    'renames a node in edges and references',
    renameNode('write', 'the author'),
    [
      '-write:',
      "-inputs: { prompt: '${nodes.write.result.choices[0].message.content}', seed: 1 }",
      '-- { from: write, to: paint }',
      '+the author:',
      `+inputs: { prompt: '\${nodes["the author"].result.choices[0].message.content}', seed: 1 }`,
      '+- { from: the author, to: paint }',
    ],
  ],
  [
    'renames a parameter in references',
    renameParameter('topic', 'subject'),
    [
      '-topic: { type: string } # what it is about',
      '-content: "Write about ${input.topic}." # polite',
      '+subject: { type: string } # what it is about',
      '+content: "Write about ${input.subject}." # polite',
    ],
  ],
  [
    'removes the last parameter, and keeps texts that name it',
    removeParameter('topic'),
    ['-parameters:', '-topic: { type: string } # what it is about'],
  ],
  ['adds an edge once', addEdge('write', 'paint'), []],
  ['adds an edge', addEdge('paint', 'write'), ['+- from: paint', '+to: write']],
  ['removes the last edge', removeEdge('write', 'paint'), ['-edges:', '-- { from: write, to: paint }']],
  [
    'appends a reference to a text',
    connect('write', content, '${input.style}'),
    [
      '-content: "Write about ${input.topic}." # polite',
      '+content: "Write about ${input.topic}. ${input.style}" # polite',
    ],
  ],
  [
    'replaces a reference by another',
    connect('paint', ['prompt'], '${input.topic}'),
    [
      "-inputs: { prompt: '${nodes.write.result.choices[0].message.content}', seed: 1 }",
      "+inputs: { prompt: '${input.topic}', seed: 1 }",
    ],
  ],
  [
    'takes a reference out of a text',
    disconnect('write', content, 'input.topic'),
    ['-content: "Write about ${input.topic}." # polite', '+content: "Write about ." # polite'],
  ],
])('%s', (_, edit, expected) => {
  expect(changes(edit)).toEqual(expected)
})

test('removing a node removes its edges and the inputs that only it gave', () => {
  const { workflow } = parseWorkflow(edited(removeNodes(['write'])))
  expect(workflow.nodes).toMatchObject([{ id: 'paint', inputs: { seed: 1 } }])
  expect(workflow.edges).toEqual([])
})

test('a taken id, an edge to itself and an aliased part are refused with a sentence', () => {
  expect(() => edited(renameNode('write', 'paint'))).toThrow("There is a node 'paint' already.")
  expect(() => edited(addEdge('write', 'write'))).toThrow('A node cannot run after itself.')
  const aliased = 'name: A\nbase: &base { seed: 1 }\ndag: { nodes: { a: { task: x, inputs: *base } } }\n'
  expect(() => edited(setValue(['dag', 'nodes', 'a', 'inputs', 'seed'], 2), aliased)).toThrow(
    "'dag.nodes.a.inputs' is not a mapping, or it is an alias",
  )
})

test('a first node is not written on one line', () => {
  expect(edited(addNode('a', { task: 'x' }), 'name: A\ndag: { nodes: {} }\n')).toContain('a: { task: x }')
  expect(edited(addNode('a', { task: 'x' }), 'name: A\ndag:\n  nodes: {}\n')).toBe(
    'name: A\ndag:\n  nodes:\n    a:\n      task: x\n',
  )
  expect(edited(addNode('a', { task: 'x' }), 'name: A\n')).toBe('name: A\ndag:\n  nodes:\n    a:\n      task: x\n')
})

test('lists that are not indented stay so', () => {
  const text = 'name: A\ndag:\n  edges:\n  - from: a\n    to: b\n'
  expect(edited(setValue(['name'], 'B'), text)).toBe(text.replace('A', 'B'))
})

test('a workflow is inserted with new names where they are taken', () => {
  const { workflow, value } = parseWorkflow(source)
  const { nodes } = (value as { dag: { nodes: Record<string, object> } }).dag
  const twice = parseWorkflow(edited(insertWorkflow(workflow, workflow, nodes))).workflow
  expect(twice.nodes.map(({ id }) => id)).toEqual(['write', 'paint', 'write2', 'paint2'])
  expect(twice.parameters.map(({ name }) => name)).toEqual(['topic', 'topic2'])
  expect(twice.edges).toEqual([
    { from: 'write', to: 'paint' },
    { from: 'write2', to: 'paint2' },
  ])
  expect(
    edited(insertWorkflow(workflow, workflow, { ...nodes, write: { outputs: [], on_error: 'fail' } })),
  ).not.toContain('on_error')
  expect(twice.nodes[3]!.inputs.prompt).toBe('${nodes.write2.result.choices[0].message.content}')
  expect(twice.nodes[2]!.inputs.messages).toEqual([{ role: 'user', content: 'Write about ${input.topic2}.' }])
})

test('a stored workflow becomes a text without defaults, and the same workflow again', () => {
  const dag = {
    nodes: { a: { task: 'std/completion', inputs: { prompt: 'two\nlines' }, outputs: [], on_error: 'fail' } },
    edges: [],
  }
  const stored = { description: null, region: 'Global', timeout: 3600, on_failure: 'continue', parameters: null }
  const limited = { tags: ['draft'], concurrency: { limit: 2, when_reached: 'refuse' as const } }
  const tagged = parseWorkflow(sourceOf({ name: 'A', ...stored, ...limited, dag })).workflow
  expect(tagged).toMatchObject(limited)
  const text = sourceOf({ name: 'A: b', ...stored, tags: [], concurrency: null, dag })
  expect(text).toBe(
    'name: "A: b"\non_failure: continue\ndag:\n  nodes:\n    a:\n      task: std/completion\n      inputs:\n        prompt: |-\n          two\n          lines\n',
  )
  expect(parseWorkflow(text).workflow).toMatchObject({ name: 'A: b', on_failure: 'continue', region: 'Global' })
})

test('a copy of a node says the same, at no place yet', () => {
  const text = edited(moveNode('paint', 10, 20)).replace('seed: 1', 'seed: &seed 1')
  const { value } = parseWorkflow(edited(duplicateNode('paint', 'paint2'), text))
  const { paint, paint2 } = (value!.dag as { nodes: Record<string, object> }).nodes
  expect({ ...paint2, position: { x: 10, y: 20 } }).toEqual(paint)
  expect(edited(duplicateNode('nobody', 'copy'))).toBe(source)
})

test.for<[type: string, before: string, after: unknown]>([
  ['integer', '"7"', 7],
  ['integer', '"7.5"', '7.5'],
  ['number', '"7.5"', 7.5],
  ['number', 'many', 'many'],
  ['string', '7', '7'],
  ['string', 'false', 'false'],
  ['boolean', '"false"', false],
  ['boolean', '7', 7],
  ['array', 'a', 'a'],
  ['image', '[1]', [1]],
])('to the type %s the default %s becomes %s', ([type, before, after]) => {
  const text = edited(setParameterType('topic', type), `parameters:\n  topic: { type: object, default: ${before} }\n`)
  expect(parseWorkflow(text).workflow.parameters[0]!.parameter).toEqual({ type, default: after })
})

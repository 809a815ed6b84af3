import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Dag, Parameter } from '../../../core/dag/definition.ts'
import { diagnose, surveyInTimeSlices } from '../../../core/workflows/diagnose.ts'
import type { Offer } from '../../../core/workflows/diagnose-node.ts'
import { blockingOf } from '../../../core/workflows/diagnostics.ts'

const Write = z.object({
  model: z.string(),
  prompt: z.string().min(1),
  n: z.int().min(1).max(4).nullish(),
  tags: z.array(z.string()).optional(),
  style: z.enum(['bold', 'plain']).optional(),
})
const Written = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullable() }) })),
  count: z.int(),
})
const Paint = z.object({ model: z.string(), prompt: z.string(), image_url: z.string().optional() })
const Say = z.object({ model: z.string(), input: z.string(), voice: z.string().nullish(), speed: z.number().nullish() })
const Said = z.object({ audio_url: z.string(), file_id: z.string() })
const Painted = z.object({ images: z.array(z.object({ url: z.string() })), more: z.looseObject({}) })

const plain = {
  runner: 'text' as const,
  otherFields: {},
  modelFaults: () => [],
}
const types = {
  write: { ...plain, request: Write, result: Written, isMediaPath: () => false },
  paint: {
    ...plain,
    otherFields: { image: 'image_url', quality: null },
    request: Paint,
    result: Painted,
    isMediaPath: (path: readonly unknown[]) => path[0] === 'image_url',
  },
  say: {
    ...plain,
    request: Say,
    result: Said,
    isMediaPath: () => false,
    modelFaults: (inputs: Readonly<Record<string, unknown>>) =>
      inputs.voice === 'nobody'
        ? [{ code: 'invalid_value', path: 'voice', message: "'voice': the model has no voice 'nobody'." }]
        : [],
  },
}
const facts = {
  id: 'm',
  extraParams: ['scheduler'],
  resolutions: undefined,
  generationDefaults: undefined,
  voices: undefined,
  voiceAliases: {},
}
const models = {
  m: { ...facts, enabled: true, tasks: ['write', 'paint', 'say'] },
  off: { ...facts, enabled: false, tasks: ['write'] },
  w: { ...facts, enabled: true, tasks: ['write'] },
}
const offer: Offer = {
  task: name => {
    const type = types[(name === 'std/write' ? 'write' : name) as keyof typeof types]
    return type && { name, type }
  },
  taskNames: () => Object.keys(types),
  model: id => models[id as keyof typeof models],
  modelIds: () => Object.keys(models),
}

type Nodes = Record<string, object>
const write = (prompt: unknown, more: object = {}) => ({ model_id: 'm', task: 'write', inputs: { prompt }, ...more })
const paint = (prompt: unknown, more: object = {}, inputs: object = {}) => ({
  model_id: 'm',
  task: 'paint',
  inputs: { prompt, ...inputs },
  ...more,
})
const edge = (text: string) => ({ from: text.split('>')[0]!, to: text.split('>')[1]! })

function found(nodes: Nodes, edges: string[] = [], parameters?: Record<string, object>) {
  const dag = Dag.parse({ nodes, edges: edges.map(edge) })
  const declared =
    parameters && Object.fromEntries(Object.entries(parameters).map(([name, one]) => [name, Parameter.parse(one)]))
  return diagnose(dag, declared, offer)
}

test('a valid graph has no diagnostics', () => {
  const story = found(
    {
      write: write('About ${input.topic}', { outputs: ['choices[0].message.content', 'result.count'] }),
      paint: paint('${nodes.write.result.choices[0].message.content}'),
      again: paint('more', {}, { image_url: '${nodes.paint.result.images[0].url}' }),
    },
    ['write>paint', 'paint>again'],
    { topic: { type: 'string' } },
  )
  expect(story).toEqual({ type_issues: [], warnings: [] })
})

test('a condition with a join and a default is valid', () => {
  const happens = { when: { value: '${input.topic}', equals: 'cats' } }
  const dag = {
    a: write('x', happens),
    b: write('y', { when: { not: happens.when } }),
    joined: write('${nodes.a.result.choices[0].message.content}', { join: 'any' }),
    named: write('n: ${nodes.b.result.count}', { defaults: { '${nodes.b.result["count"]}': 0 } }),
  }
  expect(found(dag, ['a>joined', 'b>joined'], { topic: { type: 'string' } })).toEqual({ type_issues: [], warnings: [] })
})

test('a pattern that is none is found, and one that is is not', async () => {
  const check = async (matches: string) => {
    const dag = Dag.parse({ nodes: { a: write('x', { when: { value: '${input.topic}', matches } }) } })
    const { diagnostics } = await surveyInTimeSlices(dag, undefined, offer)
    return diagnostics.warnings.map(({ code, path }) => `${code} ${path}`)
  }
  expect(await check('^cat')).toEqual([])
  expect(await check('(?=cat)')).toEqual(['invalid_condition when.matches'])
})

describe('codes', () => {
  test.for<[code: string, about: string, nodes: Nodes, edges?: string[], parameters?: Record<string, object>]>([
    ['empty_graph', 'no nodes', {}],
    ['cycle', 'a → b → a', { a: write('x'), b: write('y') }, ['a>b', 'b>a']],
    ['edge_unknown_node', "'ghost'", { a: write('x') }, ['a>ghost']],
    ['edge_unknown_node', "'ghost'", { a: write('x') }, ['ghost>a']],
    ['self_edge', "'a'", { a: write('x') }, ['a>a']],
    ['duplicate_edge', 'a → b', { a: write('x'), b: write('y') }, ['a>b', 'a>b']],
    ['node_without_model', "'a'", { a: write('x', { model_id: null }) }],
    ['node_without_model', "'a'", { a: write('x', { model_id: '' }) }],
    ['unknown_model', "'other'", { a: write('x', { model_id: 'other' }) }],
    ['model_disabled', "'off'", { a: write('x', { model_id: 'off' }) }],
    ['model_task_mismatch', 'does write, not paint', { a: paint('x', { model_id: 'w' }) }],
    ['unknown_task', "'dance'", { a: write('x', { task: 'dance' }) }],
    ['unknown_reference', "no node 'ghost'", { a: write('${nodes.ghost.result.x}') }],
    ['unknown_reference', 'its own result', { a: write('${nodes.a.result.count}') }],
    ['unknown_reference', "comes 'result'", { a: write('x'), b: write('${nodes.a.choices}') }, ['a>b']],
    ['unknown_reference', "begins with 'env'", { a: write('${env.HOME}') }],
    ['unknown_reference', "has 'id'", { a: write('${execution.owner}') }],
    [
      'reference_not_upstream',
      "'b' runs after 'a'",
      { a: write('n: ${nodes.b.result.count}'), b: write('y') },
      ['a>b'],
    ],
    ['invalid_reference_syntax', 'is missing', { a: write('${input.x') }],
    ['undeclared_input', "'topic'", { a: write('${input.topic}') }, [], {}],
    ['invalid_condition', 'it tests nothing', { a: write('x', { when: {} }) }],
    ['invalid_condition', 'is not a number', { a: write('x', { when: { value: 'x', less_than: 1 } }) }],
    ['constant_condition', 'never true', { a: write('x', { when: { value: 1, equals: 2 } }) }],
    ['constant_condition', 'always true', { a: write('x', { when: { value: 1, equals: 1 } }) }],
    [
      'constant_condition',
      'the value is of type integer and is compared with one of type string',
      { a: write('x'), b: write('y', { when: { value: '${nodes.a.result.count}', equals: '3' } }) },
    ],
    [
      'constant_condition',
      'cannot be equal to both 1 and 2',
      {
        a: write('x'),
        b: write('y', { when: { all: [1, 2].map(equals => ({ value: '${nodes.a.result.count}', equals })) } }),
      },
    ],
    [
      'unknown_reference',
      "no node 'ghost'",
      { a: write('x', { when: { value: '${nodes.ghost.result}', exists: true } }) },
    ],
    ['undeclared_input', "'topic'", { a: write('x', { when: { value: '${input.topic}', equals: 'x' } }) }, [], {}],
    [
      'unused_default',
      'always has a result',
      { a: write('x'), b: write('n: ${nodes.a.result.count}', { defaults: { 'nodes.a.result.count': 0 } }) },
    ],
    [
      'unused_default',
      'no such reference',
      { a: write('x', { on_error: 'continue' }), b: write('y', { defaults: { 'nodes.a.result.count': 0 } }) },
    ],
    ['unused_default', "no node 'ghost'", { a: write('x', { defaults: { 'nodes.ghost.result.count': 0 } }) }],
    ['unused_default', 'are for results of nodes', { a: write('x', { defaults: { 'input.topic': 0 } }) }],
    ['invalid_reference_syntax', 'cannot stand', { a: write('x', { defaults: { 'nodes..a': 0 } }) }],
    ['unused_join', 'no effect', { a: write('x'), b: write('y', { join: 'any' }) }, ['a>b']],
    ['unknown_reference', "only in the inputs of a node with 'for_each'", { a: write('${item}') }],
    ['unknown_reference', "only in the inputs of a node with 'for_each'", { a: write('at ${index}') }],
    [
      'unknown_reference',
      "only in the inputs of a node with 'for_each'",
      { a: write('x', { for_each: ['a'], when: { value: '${item}', equals: 'a' } }) },
    ],
    ['unknown_reference', "in the inputs of a node with 'for_each'", { a: write('x', { for_each: ['${item}'] }) }],
    [
      'unknown_reference',
      'item 1 of the list has no',
      { a: write('${item.t}', { for_each: [{ t: 'x' }, { u: 'y' }] }) },
    ],
    [
      'unknown_reference',
      'the items of ${nodes.a.result.images} have no such member',
      { a: paint('x'), b: write('${item.link}', { for_each: '${nodes.a.result.images}' }) },
    ],
    ['type_mismatch', 'expects string but ${item} is integer', { a: write('${item}', { for_each: [1, 2] }) }],
    ['type_mismatch', 'expects string but ${index} is integer', { a: write('${index}', { for_each: ['x'] }) }],
    [
      'type_mismatch',
      'expects string but ${item} is object',
      { a: paint('x'), b: write('${item}', { for_each: '${nodes.a.result.images}' }) },
    ],
    [
      'type_mismatch',
      'expects string but ${item.choices} is array',
      { a: write('x', { for_each: ['x'] }), b: write('${item.choices}', { for_each: '${nodes.a.result}' }) },
    ],
    [
      'type_mismatch',
      "'for_each' expects a list but ${nodes.a.result.count} is integer",
      { a: write('x'), b: write('y', { for_each: '${nodes.a.result.count}' }) },
    ],
    ['type_mismatch', "'for_each' expects a list", { a: write('y', { for_each: 'a, b' }) }],
    ['type_mismatch', "'for_each' expects a list", { a: write('y', { for_each: '' }) }],
    [
      'type_mismatch',
      "'for_each' expects a list",
      { a: write('y', { for_each: '${input.topic}' }) },
      [],
      { topic: { type: 'string' } },
    ],
    [
      'type_mismatch',
      "the parameter 'topic' is string, so it has no items",
      { a: write('n: ${input.topic[*].x}') },
      [],
      { topic: { type: 'string' } },
    ],
    ['value_out_of_range', '3 items, and', { a: write('y', { for_each: ['a', 'b', 'c'], max_items: 2 }) }],
    ['unknown_field', "'max_parallel' has no effect without", { a: write('x', { max_parallel: 2 }) }],
    ['unknown_output_path', 'no such member', { a: write('x'), b: write('n: ${nodes.a.result.count[*]}') }],
    [
      'unknown_output_path',
      'so write [*] or [0]',
      { a: write('x', { for_each: ['a'] }), b: write('n: ${nodes.a.result.count}') },
    ],
    [
      'unknown_output_path',
      'no such member',
      { a: write('x', { for_each: ['a'] }), b: write('n: ${nodes.a.result[*].counts.x}') },
    ],
    ['unknown_output_path', 'so write [*] or [0]', { a: write('x', { for_each: ['a'], outputs: ['count'] }) }],
    [
      'type_mismatch',
      'expects string but ${nodes.a.result[*].count} is array',
      { a: write('x', { for_each: ['a'] }), b: write('${nodes.a.result[*].count}') },
    ],
    ['unused_parameter', "'topic'", { a: write('x') }, [], { topic: { type: 'string' } }],
    ['input_param_type', 'is string', { a: write('n: ${input.n}') }, [], { n: { type: 'integer', default: 'three' } }],
    [
      'input_param_type',
      "value 2 of 'enum'",
      { a: write('${input.n}') },
      [],
      { n: { type: 'string', enum: ['a', 2] } },
    ],
    [
      'value_out_of_range',
      'is more than its maximum',
      { a: write('n: ${input.n}') },
      [],
      { n: { type: 'number', minimum: 3, maximum: 2 } },
    ],
    [
      'value_out_of_range',
      '9 or less',
      { a: write('n: ${input.n}') },
      [],
      { n: { type: 'number', maximum: 9, default: 10 } },
    ],
    [
      'value_out_of_range',
      'one of',
      { a: write('${input.n}') },
      [],
      { n: { type: 'string', enum: ['a'], default: 'b' } },
    ],
    ['unknown_field', "'colour'", { a: write('x', { colour: 'red' }) }],
    ['unknown_input', "no input 'colour'", { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', colour: 1 } } }],
    ['missing_input', "'prompt'", { a: { model_id: 'm', task: 'write', inputs: {} } }],
    ['type_mismatch', "'prompt'", { a: write(3) }],
    ['type_mismatch', 'expects string', { a: write('x'), b: paint('${nodes.a.result.count}') }, ['a>b']],
    [
      'type_mismatch',
      'expects integer or null',
      { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', n: '${input.n}' } } },
      [],
      { n: { type: 'string' } },
    ],
    ['value_out_of_range', "'n'", { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', n: 9 } } }],
    ['unknown_output_path', "'choices[0].text'", { a: write('x', { outputs: ['choices[0].text'] }) }],
    ['unknown_output_path', "'..'", { a: write('x', { outputs: ['..'] }) }],
    ['unknown_output_path', 'no such member', { a: write('x'), b: write('${nodes.a.result.answer}') }, ['a>b']],
    [
      'coerced_media_reference',
      "its 'url'",
      { a: paint('x'), b: paint('y', {}, { image_url: '${nodes.a.result.images[0]}' }) },
      ['a>b'],
    ],
  ])('%s: %s', ([code, about, nodes, edges, parameters]) => {
    const { type_issues, warnings } = found(nodes, edges, parameters)
    const all = [...type_issues, ...warnings]
    expect(all.map(one => one.code)).toContain(code)
    expect(all.find(one => one.code === code)!.message).toContain(about)
    // One mistake, one finding.
    expect(all).toHaveLength(1)
  })

  test.for<[title: string, nodes: Nodes, edges: string[], parameters?: Record<string, object>]>([
    [
      'an item of a literal list',
      { a: write('${item.t}', { for_each: [{ t: 'x' }, { t: '${input.t}' }], max_parallel: 2, max_items: 2 }) },
      [],
    ],
    ['an index in a text', { a: write('${index}: ${item}', { for_each: ['x'], on_item_error: 'continue' }) }, []],
    [
      'an item of a result',
      { a: paint('x'), b: write('${item.url}', { for_each: '${nodes.a.result.images}', outputs: ['[*].count'] }) },
      [],
    ],
    [
      'an item of gathered members',
      { a: paint('x'), b: write('${item}', { for_each: '${nodes.a.result.images[*].url}' }) },
      [],
    ],
    [
      'the results of all items, of one, and one after another',
      {
        a: write('x', { for_each: ['a'] }),
        b: { model_id: 'm', task: 'write', inputs: { prompt: 'x', tags: '${nodes.a.result[*].count}' } },
        c: { model_id: 'm', task: 'write', inputs: { prompt: 'x', n: '${nodes.a.result[0].count}' } },
        d: write('${item.choices[0].message.content}', { for_each: '${nodes.a.result}' }),
      },
      [],
    ],
    [
      'a list of a parameter',
      { a: write('${item.x}', { for_each: '${input.rows}' }) },
      [],
      { rows: { type: 'array' } },
    ],
    ['a list that is not known', { a: write('${item.x}', { for_each: '${input.rows}' }) }, []],
    ['a reference into what is open', { a: paint('x'), b: write('${nodes.a.result.more.deep.down}') }, ['a>b']],
    [
      'a number where a whole one is wanted',
      { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', n: '${input.n}' } } },
      [],
      { n: { type: 'number' } },
    ],
    ['an interpolation where a text is wanted', { a: write('x'), b: paint('${nodes.a.result.count} cats') }, ['a>b']],
    [
      'anything where nothing is declared',
      { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', n: '${input.n}' } } },
      [],
    ],
    [
      'a list of references',
      { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', tags: ['${input.a}', 'b'] } } },
      [],
    ],
    ['an alias of a task', { a: write('x', { task: 'std/write', model_id: 'm' }) }, []],
    ['an edge that a reference implies', { a: write('x'), b: write('n: ${nodes.a.result.count}') }, []],
    ['another name of an input', { a: paint('x', {}, { image: 'https://example.com/a.png' }) }, []],
    ['an input without effect', { a: paint('x', {}, { quality: 'high' }) }, []],
    ['a parameter that the model is configured to take', { a: paint('x', {}, { scheduler: 'x' }) }, []],
    [
      'a text with a reference where only some texts are right',
      { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', style: '${input.style}d' } } },
      [],
    ],
    ['what an editor keeps', { a: write('x', { position: { x: 1, y: 2 }, name: 'Writer' }) }, []],
  ])('%s is fine', ([, nodes, edges, parameters]) => {
    const { type_issues, warnings } = found(nodes, edges, parameters)
    expect([...type_issues, ...warnings].filter(one => one.code !== 'model_task_mismatch')).toEqual([])
  })
})

test.for<
  [about: string, code: string, more: object, nodes: Nodes, edges?: string[], parameters?: Record<string, object>]
>([
  [
    'which reference gives what where something else is expected',
    'type_mismatch',
    {
      message: 'nodes.b.inputs.prompt expects string but ${nodes.a.result.count} is integer.',
      path: 'inputs.prompt',
      expected: 'string',
      actual: 'integer',
      reference: '${nodes.a.result.count}',
    },
    { a: write('x'), b: paint('${nodes.a.result.count}') },
    ['a>b'],
  ],
  ['what is expected of a value', 'type_mismatch', { expected: 'string', actual: 'integer' }, { a: write(3) }],
  ['that it keeps it from running', 'unknown_model', { severity: 'error' }, { a: write('x', { model_id: 'other' }) }],
  ['that a value of a wrong type keeps it from running', 'type_mismatch', { severity: 'error' }, { a: write(3) }],
  [
    'that it may run all the same',
    'unknown_field',
    { severity: 'warning', message: "Node 'a': 'colour' has no meaning here." },
    { a: write('x', { colour: 1 }) },
  ],
  [
    'that a value is out of range',
    'value_out_of_range',
    { severity: 'error' },
    { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', n: 9 } } },
  ],
  [
    'that a text is no number',
    'type_mismatch',
    { severity: 'error' },
    { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', n: '${input.n} or so' } } },
  ],
  [
    'which member of a result is meant',
    'unknown_output_path',
    { severity: 'error', suggestion: 'audio_url', message: expect.stringMatching(/Did you mean 'audio_url'\?$/) },
    {
      a: { model_id: 'm', task: 'say', inputs: { input: 'x' } },
      b: write('${nodes.a.result.audiourl}'),
    },
  ],
  [
    'which output is meant',
    'unknown_output_path',
    { severity: 'error', suggestion: 'audio_url' },
    { a: { model_id: 'm', task: 'say', inputs: { input: 'x' }, outputs: ['audiourl'] } },
  ],
  [
    'which voice the model lacks',
    'value_out_of_range',
    { severity: 'error', path: 'inputs.voice' },
    { a: { model_id: 'm', task: 'say', inputs: { input: '${input.text}', voice: 'nobody' } } },
  ],
  ['which task is meant', 'unknown_task', { suggestion: 'paint' }, { a: write('x', { task: 'piant' }) }],
  ['which model is meant', 'unknown_model', { suggestion: 'off' }, { a: write('x', { model_id: 'offf' }) }],
  [
    'once that a required input is misspelt',
    'unknown_input',
    { suggestion: 'prompt' },
    { a: { model_id: 'm', task: 'write', inputs: { promt: 'x' } } },
  ],
  [
    'which node is meant',
    'unknown_reference',
    { suggestion: 'writer' },
    { writer: write('x'), b: write('${nodes.writr.result.count}') },
  ],
  [
    'which end of an edge is meant',
    'edge_unknown_node',
    { suggestion: 'second' },
    { first: write('x'), second: write('y') },
    ['first>secnod'],
  ],
  [
    'which parameter is meant',
    'undeclared_input',
    { suggestion: 'topic' },
    { a: write('${input.topics} ${input.topic}') },
    [],
    { topic: { type: 'string' } },
  ],
  ['which field is meant', 'unknown_field', { suggestion: 'timeout' }, { a: write('x', { timeuot: 3 }) }],
  [
    'which input is meant',
    'unknown_input',
    { severity: 'error', suggestion: 'tags' },
    { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', tag: ['y'] } } },
  ],
  [
    'that another model is not asked',
    'unknown_field',
    { path: 'inputs.model' },
    { a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', model: 'n' } } },
  ],
])('the message is %s', ([, code, more, nodes, edges, parameters]) => {
  const { type_issues, warnings } = found(nodes, edges, parameters)
  const all = [...type_issues, ...warnings]
  expect(all).toEqual([expect.objectContaining({ code, ...more })])
})

test('no name is suggested without a similar one', () => {
  const [warning] = found({ a: write('x'), b: write('${nodes.painter.result.count}') }).warnings
  expect(warning).not.toHaveProperty('suggestion')
})

test('the same model in the inputs is fine', () => {
  const { warnings } = found({ a: { model_id: 'm', task: 'write', inputs: { prompt: 'x', model: 'm' } } })
  expect(warnings).toEqual([])
})

test('some of them prevent an execution, others do not', () => {
  const { type_issues, warnings } = found({ a: write(3, { colour: 1 }), b: write('x', { model_id: null }) })
  expect(blockingOf({ type_issues, warnings }).map(({ code }) => code)).toEqual(['node_without_model', 'type_mismatch'])
})

test('200 nodes with 1,000 edges are validated, at once or in time slices', async () => {
  const nodes = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [
      `n${at}`,
      write(at === 0 ? 'x' : `\${nodes.n${at - 1}.result.choices[0].message.content} go`),
    ]),
  )
  const edges = Array.from({ length: 1000 }, (_, at) => `n${at % 150}>n${(at % 150) + 1 + (at % 49)}`)
  const drawn = [...new Set(edges)]
  const atOnce = found(nodes, drawn)
  expect(atOnce.type_issues).toEqual([])
  const inSlices = surveyInTimeSlices(Dag.parse({ nodes, edges: drawn.map(edge) }), undefined, offer)
  expect((await inSlices).diagnostics).toEqual(atOnce)
})

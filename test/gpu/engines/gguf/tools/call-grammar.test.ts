import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../../../core/schemas/chat.ts'
import { runSteps } from '../../../../../core/time-slice.ts'
import { type Constrained, constraintOf, openConstraints } from '../../../../../gpu/engines/gguf/chat-constraint.ts'
import { hermes, toolCallFormOf, toolCallingOf } from '../../../../../gpu/engines/gguf/tools/call-form.ts'
import { reader } from './_llama.ts'
import { templates } from './_templates.ts'

const forms = {
  hermes,
  llama: toolCallFormOf(templates.llama)!,
  mistral: toolCallFormOf(templates.mistral)!,
  named: toolCallFormOf(templates.mistralNamed)!,
}
const schema = (key: string) => ({
  type: 'object',
  properties: { [key]: { type: 'integer' } },
  required: [key],
  additionalProperties: false,
})
const tools = ['add', 'sum'].map(name => ({
  type: 'function' as const,
  function: { name, parameters: schema(name[0]!) },
}))

const grammarOf = (wanted: Constrained) => runSteps(constraintOf(wanted))

type Fields = Partial<ChatRequest>
async function allowed(form: keyof typeof forms, fields: Fields, thinking: Partial<Constrained> = {}) {
  const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'x' }], tools, ...fields }
  const calling = toolCallingOf(request, forms[form])
  const grammar = grammarOf({
    calling,
    format: request.response_format,
    marks: undefined,
    beginning: 'answer',
    ...thinking,
  })
  return reader(grammar!.grammar)
}

const forced = { tool_choice: 'required' } as const
const single = { parallel_tool_calls: false } as const
const json = { response_format: { type: 'json_schema' as const, json_schema: { name: 'j', schema: schema('j') } } }
const mayThink = { marks: { open: '<think>', close: '</think>' }, beginning: 'open' as const }
const thinks = { ...mayThink, beginning: 'thinking' as const }

const one = {
  hermes: '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
  llama: '{"name": "add", "parameters": {"a": 1}}',
  mistral: '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}]',
  named: '[TOOL_CALLS]add[ARGS]{"a": 1}',
}
const two = {
  hermes: `${one.hermes}\n<tool_call>\n{"name": "sum", "arguments": {"s": 2}}\n</tool_call>`,
  llama: `${one.llama}; {"name": "sum", "parameters": {"s": 2}}`,
  mistral: '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "sum", "arguments": {"s": 2}}]',
  named: `${one.named}[TOOL_CALLS]sum[CALL_ID]abcDEF123[ARGS]{"s":2}`,
}
/** The arguments of one function with the name of the other. */
const wrong = (text: string) => text.replace('add', 'sum')

describe.each(Object.keys(forms) as (keyof typeof forms)[])('%s', form => {
  test.each<[string, Fields, string, boolean]>([
    ['one call', forced, one[form], true],
    ['two calls', forced, two[form], true],
    ['two calls where one is allowed', { ...forced, ...single }, two[form], false],
    ['the arguments of another function', forced, wrong(one[form]), false],
    ['text where a call is required', forced, 'No.', false],
    ['text after a call', forced, `${one[form]} Done.`, false],
    ['an incomplete call', forced, one[form].slice(0, -4), false],
    ['the named function', { tool_choice: { type: 'function', function: { name: 'add' } } }, one[form], true],
    ['another function', { tool_choice: { type: 'function', function: { name: 'sum' } } }, one[form], false],
    ['words', {}, 'Well, it is {"a": 1} [x] <b>.\n', true],
    ['nothing', {}, '', true],
    ['a call', {}, one[form], true],
    ['two calls', {}, two[form], true],
    ['a call with the arguments of another function', {}, wrong(one[form]), false],
    ['a call or JSON: a call', json, one[form], true],
    ['a call or JSON: JSON', json, '{"j": 1}', true],
    ['a call or JSON: other JSON', json, '{"k": 1}', false],
    ['a call or JSON: text', json, 'Well.', false],
    ['a required call, or JSON: JSON', { ...json, ...forced }, '{"j": 1}', false],
  ])('%s: %#', async (_what, fields, text, expected) => {
    const allows = await allowed(form, fields)
    expect([text, allows(text)]).toEqual([text, expected])
  })

  test('text is allowed before a call, where calls have a mark', async () => {
    const allows = await allowed(form, {})
    const marked = form === 'llama' ? `<|python_tag|>${one.llama}` : one[form]
    expect(allows(`I will.\n\n${marked}`)).toBe(true)
    expect(allows(`I will.\n\n${wrong(marked)}`)).toBe(false)
  })

  test('reasoning comes first, may mention calls, and is not the answer', async () => {
    const may = await allowed(form, forced, mayThink)
    const must = await allowed(form, forced, thinks)
    const thought = `I could ${wrong(one[form])}, hm.\n</think>\n\n`
    expect([may(one[form]), may(`<think>\n${thought}${one[form]}`)]).toEqual([true, true])
    expect([must(`${thought}${one[form]}`), must(one[form])]).toEqual([true, false])
    expect([may(`<think>\n${thought}`), must(thought), must('I think')]).toEqual([false, false, false])
    const free = await allowed(form, {}, thinks)
    expect([free(`${thought}Yes.`), free(`${thought}${one[form]}`), free(`${thought}${wrong(one[form])}`)]).toEqual([
      true,
      true,
      false,
    ])
  })
})

test('Llama: JSON that is not a call stays text, and so does a call of an unknown function', async () => {
  const allows = await allowed('llama', {})
  for (const text of ['{"name": "Rome", "size": 3}', '{"type": "city"}', '{"name": "adder"}'])
    expect(allows(text)).toBe(true)
  expect(allows('{"type": "function", "name": "add", "parameters": {"a": 2}}')).toBe(true)
  expect(allows('{"name": "add"}')).toBe(false)
})

test('a function without parameters takes none, one with open parameters takes any object', async () => {
  const open: Fields = {
    tools: [
      { type: 'function', function: { name: 'now' } },
      { type: 'function', function: { name: 'any', parameters: {} } },
    ],
  }
  const allows = await allowed('named', { ...open, ...forced })
  expect(allows('[TOOL_CALLS]now[ARGS]{}')).toBe(true)
  expect(allows('[TOOL_CALLS]now[ARGS]{"a": 1}')).toBe(false)
  expect(allows('[TOOL_CALLS]any[ARGS]{"a": [1, {"b": null}]}')).toBe(true)
  expect(allows('[TOOL_CALLS]any[ARGS]1')).toBe(false)
})

test('without tools and formats there is no grammar', () =>
  expect(grammarOf({ calling: undefined, format: { type: 'text' }, ...thinks })).toBeUndefined())

describe('compiled grammars are cached', () => {
  const wanted = (name: string, forced: boolean): Constrained => {
    const function_ = { name, parameters: schema('a') }
    const request = {
      tools: [{ type: 'function' as const, function: function_ }],
      tool_choice: forced ? 'required' : 'auto',
    }
    const calling = toolCallingOf({ model: 'm', messages: [], ...request } as ChatRequest, hermes)
    return { calling, format: undefined, marks: undefined, beginning: 'answer' }
  }
  const asked = [wanted('f', true), wanted('g', true), wanted('f', false), wanted('f', true)]

  test.each([
    ['a large cache', undefined],
    ['a cache for one or two', 3_000],
    ['no cache', 10],
  ])('and equal new ones, with %s', async (_what, most) => {
    const constraint = openConstraints(most)
    for (const _round of [1, 2]) expect(await Promise.all(asked.map(constraint))).toEqual(asked.map(grammarOf))
  })

  test('while a grammar for a hundred tools is compiled, the event loop serves others', async () => {
    const many = Array.from({ length: 100 }, (_, at) => ({
      type: 'function' as const,
      function: { name: `tool_${at}`, parameters: { ...schema('a'), description: `The tool number ${at}` } },
    }))
    const calling = toolCallingOf({ model: 'm', messages: [], tools: many }, hermes)
    let served = 0
    let next = setImmediate(function serve() {
      served++
      next = setImmediate(serve)
    })
    const grammar = await openConstraints()({ calling, format: undefined, marks: undefined, beginning: 'answer' })
    clearImmediate(next)
    expect(grammar!.grammar).toContain('tool_99')
    // It takes dozens of milliseconds. Without time slices nothing would have been served.
    expect(served).toBeGreaterThan(3)
  })

  test('the same grammar is not compiled twice, even while the first is being compiled', async () => {
    const constraint = openConstraints()
    let read = 0
    const counted = wanted('h', true)
    const { parameters } = counted.calling!.tools[0]!.tool.function
    Object.defineProperty(parameters, 'required', { enumerable: true, get: () => (read++, ['a']) })
    const [one, two] = await Promise.all([constraint(counted), constraint(counted)])
    const both = read
    expect(two).toBe(one)
    expect(await constraint(counted)).toBe(one)
    // Once for the key, and not again for a grammar.
    expect(read).toBe(both + 1)
    const alone = openConstraints()
    read = 0
    await alone(counted)
    expect(both).toBe(read + 1)
  })
})

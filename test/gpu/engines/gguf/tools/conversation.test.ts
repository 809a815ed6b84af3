import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../../../core/schemas/chat.ts'
import { beginningOf, thinkingVariables, thinkMarksOf } from '../../../../../gpu/engines/gguf/answer-parser.ts'
import { openTemplate } from '../../../../../gpu/engines/gguf/template.ts'
import { toolCallingOf } from '../../../../../gpu/engines/gguf/tools/call-form.ts'
import { templates } from './_templates.ts'

type Fields = Partial<ChatRequest>
const tools = ['get_weather', 'add'].map(name => ({
  type: 'function' as const,
  function: {
    name,
    description: `Does ${name}.`,
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
}))
const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function' as const,
  function: { name, arguments: args },
})
const history: ChatRequest['messages'] = [
  { role: 'user', content: 'Weather?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [call('call_1', 'get_weather', '{"city": "Rome"}'), call('call_2', 'get_weather', '{"city": "Oslo"}')],
  },
  { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
  { role: 'tool', tool_call_id: 'call_2', content: 'snow' },
]

const open = (source: string) => openTemplate({ source, bos: '<s>', eos: '</s>', controls: ['<|im_end|>', '</s>'] })
const request = (fields: Fields): ChatRequest => ({ model: 'm', messages: history, ...fields })
function prompt(source: string, fields: Fields = {}): string {
  const { render, form } = open(source)
  const asked = request(fields)
  return render(asked.messages, thinkingVariables(asked), toolCallingOf(asked, form))
    .map(({ text }) => text)
    .join('')
}

describe('tools in the prompt of a template', () => {
  test.each([
    ['hermes', 'hermes'],
    ['qwen3', 'hermes'],
    ['llama', 'llama'],
    ['mistral', 'mistral'],
    ['mistralNamed', 'mistral-named'],
    ['strict', 'hermes'],
    ['thinker', 'hermes'],
  ] as const)('%s writes calls like %s', (name, family) => expect(open(templates[name]).form.family).toBe(family))

  test.each([
    ['its own tags', '<tool_call><function={{ c.function.name }}>{{ c.function.arguments | tojson }}</function>'],
    ['keys and values', '<tool_call>{{ c.function.name }}<arg>{{ c.function.arguments | tojson }}</arg></tool_call>'],
    ['no earlier calls', ''],
  ])('a template with the same marks that writes %s gets the call format of infer', (_what, call) => {
    const source = `{{ tools | tojson }}{# <tool_call> #}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}${call}{% endfor %}{% endfor %}`
    const text = prompt(source, { tools })
    expect(text).toContain('To call a function, write')
    expect(text).toContain('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>')
  })

  test('Hermes gets the tools, and the arguments of calls as objects', () => {
    const text = prompt(templates.hermes, { tools })
    expect(text).toContain('"description": "Does add."')
    expect(text).toContain('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>')
    expect(text).not.toContain('To call a function')
  })

  test('a template that fails on missing content gets an empty one', () => {
    const text = prompt(templates.qwen3, { tools })
    expect(text).toContain('{"name": "get_weather", "arguments": {"city": "Oslo"}}')
    expect(text).not.toContain('To call a function')
  })

  test('Llama gets one call per message, each before its result', () => {
    const text = prompt(templates.llama, { tools })
    const places = ['"parameters": {"city": "Rome"}', 'sunny', '"parameters": {"city": "Oslo"}', 'snow'].map(part =>
      text.indexOf(part),
    )
    expect(places.every(place => place > 0)).toBe(true)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
  })

  test('Mistral gets ids of nine characters, the same for a call and its result', () => {
    const text = prompt(templates.mistral, {
      tools,
      messages: [...history.slice(0, 4), { role: 'user', content: 'And?' }],
    })
    const ids = [...text.matchAll(/"id": "(\w{9})"/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(2)
    for (const [at, result] of ['sunny', 'snow'].entries()) expect(text).toContain(`[TOOL_RESULTS]${ids[at]}:${result}`)
    expect(text).toContain('[AVAILABLE_TOOLS]')
  })

  test('a template that inserts the arguments into its text gets them as text', () => {
    expect(prompt(templates.mistralNamed, { tools })).toContain('[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}')
  })

  test('without support for tools and system, the user message has both, and user messages are merged', () => {
    const messages: ChatRequest['messages'] = [...history, { role: 'user', content: 'And?' }]
    const text = prompt(templates.strict, { tools, messages, parallel_tool_calls: false })
    expect(text.startsWith('<start_of_turn>user\nYou can call functions.')).toBe(true)
    expect(text).toContain('Make one call at a time.')
    expect(text).toContain('{"name":"add","description":"Does add."')
    expect(text).toContain('</tools>')
    expect(text).toContain(
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>\n<tool_call>',
    )
    expect(text).toContain(
      '<start_of_turn>user\n<tool_response>\nsunny\n</tool_response>\n<tool_response>\nsnow\n</tool_response>\nAnd?<end_of_turn>',
    )
  })

  test('the older `functions` are converted to tools', () => {
    const messages: ChatRequest['messages'] = [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: null, function_call: { name: 'get_weather', arguments: '{"city": "Rome"}' } },
      { role: 'function', name: 'get_weather', content: 'sunny' },
      { role: 'user', content: 'And?' },
    ]
    const text = prompt(templates.mistral, { tools, messages })
    const [, id] = /"arguments": {"city": "Rome"}, "id": "(\w{9})"/.exec(text)!
    expect(text).toContain(`[TOOL_RESULTS]${id}:sunny`)
  })

  test.each<[string, Fields]>([
    ['no tools are given', {}],
    ['no tool may be called', { tools, tool_choice: 'none' }],
  ])('the prompt has no tools where %s', (_when, fields) => {
    for (const source of [templates.hermes, templates.strict])
      expect(prompt(source, { ...fields, messages: [{ role: 'user', content: 'Hi' }] })).not.toMatch(/tools|function/)
  })

  test('names and descriptions of tools never become control tokens', () => {
    const [weather] = tools
    const odd = { ...weather!.function, description: '<|im_end|>', parameters: { properties: { '<|im_end|>': {} } } }
    const { render, form } = open(templates.hermes)
    const asked = request({ tools: [{ type: 'function', function: odd }] })
    const stretches = render(asked.messages, {}, toolCallingOf(asked, form))
    expect(stretches.filter(({ plain }) => plain).map(({ text }) => text)).toEqual(['<|im_end|>', '<|im_end|>'])
  })
})

describe('the requested calls', () => {
  const { form } = open(templates.hermes)
  const said = (fields: Fields) => {
    const calling = toolCallingOf(request(fields), form)
    return calling && [calling.tools.map(({ tool }) => tool.function.name).join(), calling.forced, calling.parallel]
  }
  test.each<[string, Fields, unknown]>([
    ['no tools', {}, undefined],
    ['an empty list', { tools: [] }, undefined],
    ['none', { tools, tool_choice: 'none' }, undefined],
    ['tools', { tools }, ['get_weather,add', false, true]],
    ['auto', { tools, tool_choice: 'auto', parallel_tool_calls: false }, ['get_weather,add', false, false]],
    ['required', { tools, tool_choice: 'required' }, ['get_weather,add', true, true]],
    ['named', { tools, tool_choice: { type: 'function', function: { name: 'add' } } }, ['add', true, false]],
  ])('%s', (_what, fields, expected) => expect(said(fields)).toEqual(expected))

  test.each<Fields>([
    { tool_choice: 'required' },
    { tools, tool_choice: { type: 'function', function: { name: 'other' } } },
  ])('a tool_choice that names an unknown function is refused', fields =>
    expect(() => said(fields)).toThrow(expect.objectContaining({ code: 'invalid_value', param: 'tool_choice' })),
  )
})

describe('reasoning', () => {
  const beginning = (source: string, fields: Fields) =>
    beginningOf(prompt(source, { messages: [{ role: 'user', content: 'Hi' }], ...fields }), thinkMarksOf(source))
  test.each<[string, string, Fields, string]>([
    ['a model without reasoning', templates.hermes, {}, 'answer'],
    ['a model with optional reasoning', templates.qwen3, {}, 'open'],
    ['a model with it turned off', templates.qwen3, { chat_template_kwargs: { enable_thinking: false } }, 'answer'],
    ['effort none', templates.qwen3, { reasoning_effort: 'none' }, 'answer'],
    ['some effort', templates.qwen3, { reasoning_effort: 'low' }, 'open'],
    [
      'the template’s own variable overrides the effort',
      templates.qwen3,
      { reasoning_effort: 'high', chat_template_kwargs: { enable_thinking: false } },
      'answer',
    ],
    ['a template whose prompt begins the reasoning', templates.thinker, {}, 'thinking'],
  ])('%s', (_what, source, fields, expected) => expect(beginning(source, fields)).toBe(expected))
})

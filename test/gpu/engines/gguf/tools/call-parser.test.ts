import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Beginning, openAnswerParser, type ThinkMarks } from '../../../../../gpu/engines/gguf/answer-parser.ts'
import { hermes, type ToolCallForm, toolCallFormOf } from '../../../../../gpu/engines/gguf/tools/call-form.ts'
import { type AnswerEvent, append } from '../../../../../gpu/engines/gguf/tools/call-parser.ts'
import { templates } from './_templates.ts'

const form = (name: keyof typeof templates): ToolCallForm => toolCallFormOf(templates[name])!
const names = ['get_weather', 'add']
const calling = (form: ToolCallForm) => ({
  form,
  tools: names.map((name, at) => ({ tool: { type: 'function' as const, function: { name } }, at })),
  forced: false,
  parallel: true,
})
const think: ThinkMarks = { open: '<think>', close: '</think>' }

interface Setting {
  form?: ToolCallForm
  beginning?: Beginning
  /** Whether the token limit ended the answer. */
  cut?: boolean
}

function parse({ form, beginning, cut = false }: Setting, pieces: readonly string[]): AnswerEvent[] {
  const parser = openAnswerParser({
    calling: form && calling(form),
    marks: beginning && think,
    beginning: beginning ?? 'answer',
  })
  const events: AnswerEvent[] = []
  for (const piece of pieces) for (const event of parser.push(piece)) append(events, event)
  for (const event of parser.end(cut)) append(events, event)
  return events
}

/** Events in short form: content as text, reasoning in (), calls as name and arguments. */
const short = (events: AnswerEvent[]): string =>
  events
    .map(event =>
      event.kind === 'call'
        ? `|${event.name} `
        : event.kind === 'reasoning'
          ? `(${event.text})`
          : event.kind === 'content'
            ? `"${event.text}"`
            : event.text,
    )
    .join('')

const cases: [string, Setting, string, string][] = [
  ['text only', { form: hermes }, 'It is <b>warm</b> today.\n', '"It is <b>warm</b> today.\n"'],
  ['nothing', { form: hermes }, '', ''],
  ['white space only', { form: hermes }, ' \n', '" \n"'],
  ['the beginning of a marker, which is text', { form: hermes }, 'a < b <tool_', '"a < b <tool_"'],
  ['a marker cut by the token limit', { form: hermes, cut: true }, 'Let me see.\n<tool_', '"Let me see."'],
  ['text cut by the token limit', { form: hermes, cut: true }, 'It is war', '"It is war"'],
  ['a line cut by the token limit', { form: hermes, cut: true }, 'It is warm.\n', '"It is warm.\n"'],
  ['a call without a marker, cut by the token limit', { form: form('llama'), cut: true }, '{"name": "get_we', ''],
  [
    'Qwen 2.5',
    { form: hermes },
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
    '|get_weather {"city": "Paris"}',
  ],
  [
    'Qwen 3, with text first and two calls',
    { form: hermes },
    'Let me see.\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>\n<tool_call>\n{"name": "add", "arguments": {"a": [1, {"b": "}"}]}}\n</tool_call>',
    '"Let me see."|get_weather {"city": "Paris", "days": 2}|add {"a": [1, {"b": "}"}]}',
  ],
  [
    'Hermes 2, with the arguments first',
    { form: hermes },
    '<tool_call>\n{"arguments": {"city": "Rome"}, "name": "get_weather"}\n</tool_call>\n',
    '|get_weather {"city": "Rome"}',
  ],
  [
    'marks and quotes inside arguments',
    { form: hermes },
    '<tool_call>{"name":"add","arguments":{"a":"</tool_call> \\"}{ <tool_call>"}}</tool_call>',
    '|add {"a":"</tool_call> \\"}{ <tool_call>"}',
  ],
  [
    'arguments as a string',
    { form: hermes },
    '<tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}',
    '|add {"a": 1}',
  ],
  ['no arguments', { form: hermes }, '<tool_call>{"name": "add"}</tool_call>', '|add {}'],
  [
    'a call and then text',
    { form: hermes },
    '<tool_call>{"name":"add","arguments":{}}</tool_call>\nDone.',
    '|add {}"Done."',
  ],
  [
    'an answer cut in its arguments',
    { form: hermes },
    'So <tool_call>{"name":"add","arguments":{"a":',
    '"So"|add {"a":',
  ],
  ['an answer cut in its mark', { form: hermes }, 'So <tool_', '"So <tool_"'],
  ['an answer cut in its name', { form: hermes }, '<tool_call>\n{"name": "ad', ''],
  ['no call after the mark', { form: hermes }, '<tool_call>nothing', '"nothing"'],
  [
    'Llama 3.1',
    { form: form('llama') },
    '{"name": "get_weather", "parameters": {"city": "Paris"}}',
    '|get_weather {"city": "Paris"}',
  ],
  [
    'Llama 3.1 with the tag for tools',
    { form: form('llama') },
    '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}',
    '|get_weather {"city": "Paris"}',
  ],
  [
    'Llama 3.2, with a type',
    { form: form('llama') },
    '{"type": "function", "name": "add", "parameters": {"a": 1}}',
    '|add {"a": 1}',
  ],
  [
    'Llama 3, several calls',
    { form: form('llama') },
    '{"name": "add", "parameters": {"a": 1}}; {"name": "add", "parameters": {"a": 2}}',
    '|add {"a": 1}|add {"a": 2}',
  ],
  [
    'Llama 3, JSON that is not a call',
    { form: form('llama') },
    '\n{"name": "Paris", "size": 2}',
    '"\n{"name": "Paris", "size": 2}"',
  ],
  ['Llama 3, JSON cut short', { form: form('llama') }, '{"name": "get_', '"{"name": "get_"'],
  [
    'Llama 3, text before the tag',
    { form: form('llama') },
    'I will.\n<|python_tag|>{"name": "add", "parameters": {}}',
    '"I will."|add {}',
  ],
  [
    'Mistral v3',
    { form: form('mistral') },
    '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "add", "arguments": {"a": [1]}}]',
    '|get_weather {"city": "Paris"}|add {"a": [1]}',
  ],
  [
    'Mistral Nemo, with an id',
    { form: form('mistral') },
    'Sure. [TOOL_CALLS][{"name": "add", "arguments": {}, "id": "VvvODy9mT"}]',
    '"Sure."|add {}',
  ],
  [
    'Mistral, new',
    { form: form('mistralNamed') },
    '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]add[ARGS]{"a": 1}',
    '|get_weather {"city": "Paris"}|add {"a": 1}',
  ],
  [
    'Mistral Small 3.2, with an id',
    { form: form('mistralNamed') },
    '[TOOL_CALLS]get_weather[CALL_ID]1a2B3c4D5[ARGS]{"city": "[ARGS]"}',
    '|get_weather {"city": "[ARGS]"}',
  ],
  ['thoughts', { beginning: 'open' }, '<think>\nLet me think.\n</think>\n\nYes.\n', '(Let me think.)"Yes.\n"'],
  [
    'reasoning that began in the prompt',
    { beginning: 'thinking' },
    'Hm.\n\nSo.\n</think>\n\nYes.',
    '(Hm.\n\nSo.)"Yes."',
  ],
  ['empty reasoning', { beginning: 'open' }, '<think>\n\n</think>\n\nYes.', '"Yes."'],
  ['no reasoning, where it is optional', { beginning: 'open' }, 'Yes, <think> is a mark.', '"Yes, <think> is a mark."'],
  ['reasoning that was cut', { beginning: 'thinking' }, 'Hm. </thin', '(Hm. </thin)'],
  ['a mark that was cut', { beginning: 'open' }, '<thi', '"<thi"'],
  [
    'reasoning about calls, then a call',
    { form: hermes, beginning: 'open' },
    '<think>I could write <tool_call>{"name":"add"}.</think>\n\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
    '(I could write <tool_call>{"name":"add"}.)|add {"a": 1}',
  ],
  ['reasoning marks in an answer without reasoning', {}, 'a <think>b</think> c', '"a <think>b</think> c"'],
]

describe('the parts of an answer', () => {
  test.each(cases)('%s', (_what, setting, text, expected) => expect(short(parse(setting, [text]))).toBe(expected))

  test.each(cases)('the same character by character: %s', (_what, setting, text, expected) =>
    expect(short(parse(setting, Array.from(text)))).toBe(expected),
  )

  test.each(cases)('the same split at any two positions: %s', (_what, setting, text, expected) => {
    const characters = Array.from(text)
    for (let first = 0; first <= characters.length; first++)
      for (let second = first; second <= characters.length; second++) {
        const pieces = [characters.slice(0, first), characters.slice(first, second), characters.slice(second)]
        const said = short(
          parse(
            setting,
            pieces.map(piece => piece.join('')),
          ),
        )
        if (said !== expected) expect(said, `cut at ${first} and ${second}`).toBe(expected)
      }
  })

  test('any text, with any split', () => {
    const words = ['<tool_call>', '</tool_call>', '[TOOL_CALLS]', '[ARGS]', '<|python_tag|>', '<think>', '</think>']
    const json = [
      '{',
      '}',
      '[',
      ']',
      '"',
      ':',
      ',',
      ';',
      '"name"',
      '"add"',
      '"arguments"',
      '"parameters"',
      '\\',
      ' ',
      '\n',
      'a',
    ]
    const piece = fc.oneof(fc.constantFrom(...words), fc.constantFrom(...json))
    const forms = (['llama', 'mistral', 'mistralNamed'] as const).map(form)
    fc.assert(
      fc.property(
        fc.constantFrom(undefined, hermes, ...forms),
        fc.constantFrom<(Beginning | undefined)[]>('open', 'thinking', 'answer', undefined),
        fc.array(piece, { maxLength: 30 }),
        fc.array(fc.nat(40), { maxLength: 8 }),
        (form, beginning, parts, cuts) => {
          const text = parts.join('')
          const places = [...new Set(cuts.map(cut => Math.min(cut, text.length)))].toSorted((a, b) => a - b)
          const pieces = [0, ...places].map((from, at) => text.slice(from, places[at] ?? text.length))
          expect(parse({ form, beginning }, pieces)).toEqual(parse({ form, beginning }, [text]))
        },
      ),
      { numRuns: 2000 },
    )
  })
})

import { describe, expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import type { ChatRequest } from '../../../../core/schemas/chat.ts'
import { openTemplate } from '../../../../gpu/engines/gguf/template.ts'

type Messages = ChatRequest['messages']
const controls = ['<s>', '<|im_start|>', '<|im_end|>', '[x]']
const open = (source?: string, more: object = {}) =>
  openTemplate({ source, bos: '<s>', eos: '</s>', controls, ...more })
const text = (source: string | undefined, messages: Messages, variables?: Record<string, unknown>) =>
  open(source)
    .render(messages, variables)
    .map(stretch => stretch.text)
    .join('')
const user = (content: string): Messages[number] => ({ role: 'user', content })
const system = (content: string): Messages[number] => ({ role: 'system', content })
const each = '{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}'

describe('the variables of a template', () => {
  test.each<[string, string | undefined, Messages, string]>([
    [
      'ChatML where the model has none',
      undefined,
      [user('hi')],
      '<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n',
    ],
    ['the marks of begin and end', '{{ bos_token }}{{ eos_token }}', [user('hi')], '<s></s>'],
    ['whether an answer is expected', '{% if add_generation_prompt %}yes{% endif %}', [user('hi')], 'yes'],
    [
      'text parts as one text',
      each,
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      ],
      'user=a\nb;',
    ],
    ['developer messages as system messages', each, [{ role: 'developer', content: 'a' }], 'system=a;'],
    [
      'developer messages unchanged, where the template supports them',
      `${each}{# developer #}`,
      [{ role: 'developer', content: 'a' }],
      'developer=a;',
    ],
    [
      'function results as user messages, where the template supports no tools',
      each,
      [{ role: 'function', name: 'f', content: 'a' }],
      'user=<tool_response>\na\n</tool_response>;',
    ],
    [
      'instructions after the start, where the template takes them nowhere else',
      `{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('Too late.') }}{% endif %}{% endfor %}${each}`,
      [system('a'), system('b'), user('c'), system('d')],
      'system=a\n\nb;user=c\n\n<system>\nd\n</system>;',
    ],
    [
      'instructions to a template without a system role',
      `{% if messages[0].role == 'system' %}{{ raise_exception('No system.') }}{% endif %}${each}`,
      [system('a'), user('b')],
      'user=a\n\nb;',
    ],
    ['instructions anywhere, where the template allows it', each, [user('a'), system('b')], 'user=a;system=b;'],
    ['missing content as empty', '{{ messages[0].content is none }}', [{ role: 'assistant', content: null }], 'true'],
  ])('%s', (_rule, source, messages, expected) => expect(text(source, messages)).toBe(expected))

  test('variables of the caller are available, but do not replace those of infer', () => {
    expect(text('{{ thinking }}', [user('hi')], { thinking: 'on' })).toBe('on')
    expect(text(each, [user('hi')], { messages: [] })).toBe('user=hi;')
  })
})

describe('text of a caller never becomes a control token', () => {
  test.each<[string, string, [string, boolean][]]>([
    ['nothing to escape', 'hi', [['user=hi;', false]]],
    [
      'in the middle',
      'a<|im_end|>b',
      [
        ['user=a', false],
        ['<|im_end|>', true],
        ['b;', false],
      ],
    ],
    [
      'several, and in brackets',
      '[x]<s>',
      [
        ['user=', false],
        ['[x]', true],
        ['<s>', true],
        [';', false],
      ],
    ],
  ])('%s', (_rule, content, stretches) =>
    expect(open(each).render([user(content)])).toEqual(stretches.map(([text, plain]) => ({ text, plain }))),
  )

  test('even where the template changes and searches contents', () => {
    const source =
      "{% for m in messages %}{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1] | trim }}{% endif %}{% endfor %}"
    expect(open(source).render([user('secret</think>  <|im_end|> said ')])).toEqual([
      { text: '<|im_end|>', plain: true },
      { text: ' said', plain: false },
    ])
  })

  test('also in names, calls and variables, but not in text of the template itself', () => {
    const source = '<s>{{ messages[0].name }}{{ kind }}'
    const stretches = open(source).render([{ role: 'user', content: '', name: '<s>' }], { kind: '<|im_end|>' })
    expect(stretches.filter(stretch => stretch.plain).map(stretch => stretch.text)).toEqual(['<s>', '<|im_end|>'])
    expect(stretches[0]).toEqual({ text: '<s>', plain: false })
  })
})

describe('errors', () => {
  const failing = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      return error as Failure
    }
    throw new Error('It did not fail.')
  }
  test('a template that refuses the messages gives the reason', () => {
    const failure = failing(() => open("{{ raise_exception('Roles must alternate') }}").render([user('hi')]))
    expect([failure.code, failure.param]).toEqual(['invalid_value', 'messages'])
    expect(failure.message).toContain('Roles must alternate')
  })
  test('an invalid template fails the start', () => expect(failing(() => open('{% if %}')).code).toBe('worker_error'))
  test('an image is refused with its position', () => {
    const picture: Messages[number] = { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }
    const failure = failing(() => open().render([user('hi'), picture]))
    expect([failure.code, failure.param]).toEqual(['unsupported_parameter', 'messages[1].content[0]'])
  })
})

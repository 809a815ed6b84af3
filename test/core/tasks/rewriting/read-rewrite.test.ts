import { expect, test } from 'vitest'
import { readRewrite } from '../../../../core/tasks/rewriting/read-rewrite.ts'

const read = (answer: string | null, { count = 1, maxLength = 100 } = {}) =>
  readRewrite(answer, { modelId: 'chat', count, maxLength })

const rows: [string, string, string[], { count?: number; maxLength?: number }?][] = [
  ['the requested JSON', '{"prompts":["a red cat"]}', ['a red cat']],
  ['several prompts in JSON', '{"prompts":["one","two","three"]}', ['one', 'two', 'three'], { count: 3 }],
  ['more prompts than requested', '{"prompts":["one","two","three"]}', ['one', 'two'], { count: 2 }],
  ['fewer prompts than requested', '{"prompts":["one"]}', ['one'], { count: 3 }],
  ['the same prompt twice', '{"prompts":["one","one","two"]}', ['one', 'two'], { count: 3 }],
  ['JSON under another name', '{"rewritten_prompt":"a cat"}', ['a cat']],
  ['a bare list', '["a","b"]', ['a', 'b'], { count: 2 }],
  ['JSON in a code block', 'Sure!\n```json\n{"prompts":["a cat"]}\n```', ['a cat']],
  ['JSON after reasoning', '<think>{"prompts":["no"]}</think>{"prompts":["yes"]}', ['yes']],
  ['a plain line', 'A red cat on a mat, soft light', ['A red cat on a mat, soft light']],
  ['a line with quotes', '"A red cat"', ['A red cat']],
  ['a label', 'Prompt: a red cat', ['a red cat']],
  ['an introduction', 'Here is the prompt:\n\nA red cat', ['A red cat']],
  ['several lines for one prompt', 'A red cat,\nsoft light', ['A red cat, soft light']],
  ['numbered lines', '1. one\n2) two\n- three', ['one', 'two', 'three'], { count: 3 }],
  ['brackets in a text', 'A cat [red] on {a} mat', ['A cat [red] on {a} mat']],
  ['a footnote in a text', 'A cat [1] on a mat', ['A cat [1] on a mat']],
  ['control characters', 'a\u0000red\u001bcat', ['a red cat']],
  ['a long text, at a word', 'aaaa bbbb cccc dddd', ['aaaa bbbb'], { maxLength: 13 }],
  ['a long text, at a sentence', 'A red cat. It sits on the mat.', ['A red cat.'], { maxLength: 15 }],
  ['a long word', 'a'.repeat(30), ['a'.repeat(10)], { maxLength: 10 }],
  ['JSON that ends in a long prompt', '{"prompts":["A red cat. It sits on', ['A red cat.'], { maxLength: 12 }],
  ['JSON that ends within an escape', '{"prompt":"A red cat. It sits\\u00', ['A red cat.'], { maxLength: 12 }],
  ['whole prompts before the end', '{"prompts":["a red cat","a blue', ['a red cat'], { count: 2 }],
]
test.each(rows)('reads %s', (_, answer, expected, options) => expect(read(answer, options)).toEqual(expected))

test.each([
  ['nothing', null],
  ['an empty text', ' \n'],
  ['punctuation', '"…"'],
  ['reasoning without an end', '<think>a cat'],
  ['JSON that was cut off', '{"prompts":["a red ca'],
  ['JSON without prompts', '{"answer":42}'],
  ['an empty list', '{"prompts":[]}'],
  ['empty prompts', '{"prompts":["", " "]}'],
])('%s is no usable answer: worker_error', (_, answer) => {
  expect(() => read(answer)).toThrow("The model 'chat' did not answer with a prompt.")
})

import { expect, test } from 'vitest'
import type { Parameter } from '../../../../../../server/console/app/pages/editor/document/workflow-document.ts'
import { parseWorkflow } from '../../../../../../server/console/app/pages/editor/document/workflow-document.ts'
import {
  executionOf,
  fieldsOfParameters,
  firstEntered,
  linkOf,
  resultNodes,
} from '../../../../../../server/console/app/pages/workflows/form/parameter-form.ts'

const parameters = new Map<string, Parameter>([
  ['topic', { type: 'string', default: 'the sea', description: 'About what' }],
  ['portrait', { type: 'video' }],
  ['size', { type: 'integer', enum: [256, 512], default: 512 }],
  ['loud', { type: 'boolean', default: false }],
  ['words', { type: 'array', required: false }],
  ['count', { type: 'integer', minimum: 1, maximum: 9 }],
])
const fields = fieldsOfParameters(parameters)
const none = new URLSearchParams()

test('parameters are fields of their kinds, and those without a default come first', () => {
  expect(fields.map(({ name, label, kind, required }) => [name, label, kind, required])).toEqual([
    ['portrait', 'Portrait', 'media', true],
    ['count', 'Count', 'number', true],
    ['topic', 'Topic', 'text', false],
    ['size', 'Size', 'choice', false],
    ['loud', 'Loud', 'yes-no', false],
    ['words', 'Words', 'json', false],
  ])
  expect(fields[0]).toMatchObject({ medium: 'video' })
  expect(fields[1]).toMatchObject({ whole: true, minimum: 1, maximum: 9 })
  expect(fields[3]).toMatchObject({ options: ['256', '512'] })
})

test('the form begins with the defaults, and a link says something else', () => {
  expect(firstEntered(fields, parameters, none)).toEqual({ topic: 'the sea', size: '512', loud: 'no' })
  const link = new URLSearchParams('topic=birds&unknown=1')
  expect(firstEntered(fields, parameters, link)).toEqual({ topic: 'birds', size: '512', loud: 'no' })
})

test.each([
  ['choices have their types', { size: '256', portrait: 'v', count: '3' }, { size: 256, portrait: 'v', count: 3 }, {}],
  ['what is missing is named', { portrait: '' }, {}, { portrait: 'missing', count: 'missing' }],
  [
    'lists are JSON',
    { portrait: 'v', count: '1', words: '["a"]', loud: 'yes' },
    { portrait: 'v', count: 1, words: ['a'], loud: true },
    {},
  ],
  ['no JSON', { portrait: 'v', count: '1', words: '[' }, { portrait: 'v', count: 1 }, { words: 'json' }],
])('an execution: %s', (_, entered, input_params, errors) => {
  expect(executionOf(fields, parameters, entered)).toEqual({ input_params, errors })
})

test.each([
  ['nothing differs', { topic: 'the sea' }, 'http://box/form'],
  ['what differs', { topic: 'a & b', size: '512' }, 'http://box/form?topic=a+%26+b'],
  ['too long', { topic: 'x'.repeat(3_000) }, 'http://box/form'],
])('the link: %s', (_, entered, link) => {
  expect(linkOf('http://box/form', entered, { topic: 'the sea', size: '512' })).toBe(link)
})

test('results are shown of nodes that no other takes a value from', () => {
  const { workflow } = parseWorkflow(`name: a
dag:
  nodes:
    write: { task: std/chat-completion, inputs: {} }
    paint: { task: slug/text-to-image, inputs: { prompt: '\${nodes.write.result.choices[0].message.content}' } }
    speak: { task: std/audio-speech, inputs: { input: '\${nodes.write.result.choices[0].message.content}' } }
`)
  expect(resultNodes(workflow)).toEqual(['paint', 'speak'])
})

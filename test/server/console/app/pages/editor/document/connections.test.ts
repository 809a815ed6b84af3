import { expect, test } from 'vitest'
import { everyItem } from '../../../../../../../core/workflows/references.ts'
import {
  type Drawn,
  entryOf,
  judgeEnd,
  type PortFacts,
} from '../../../../../../../server/console/app/pages/editor/document/connections.ts'
import {
  fitOf,
  kindOfOutput,
  kindOfParameter,
  type PortKind,
  takenBy,
} from '../../../../../../../server/console/app/pages/editor/document/port-kinds.ts'
import { portName, portNames } from '../../../../../../../server/console/app/pages/editor/document/port-names.ts'
import {
  inputHandle,
  orderHandles,
  outputHandle,
} from '../../../../../../../server/console/app/pages/editor/document/ports.ts'
import type { FieldKind, TaskFacts } from '../../../../../../../server/console/app/pages/editor/document/schema.ts'
import type { Path } from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

test.each([
  [['prompt'], 'Prompt'],
  [['negative_prompt'], 'Negative prompt'],
  [['image_url'], 'Image'],
  [['url'], 'Address'],
  [['messages', 0, 'content'], 'Message'],
  [['messages', 1, 'content'], 'Message 2'],
  [['documents', 2], 'Documents 3'],
  [['choices', 0, 'message', 'content'], 'Answer'],
  [['images', 0, 'url'], 'Image'],
  [['images', 1, 'url'], 'Image 2'],
  [['images', everyItem, 'url'], 'Image of every item'],
  [['audio_url'], 'Audio'],
  [[], 'Result'],
] satisfies [Path, string][])('the port %j is called %s', (path, name) => {
  expect(portName(path)).toBe(name)
})

test('ports that would have the same name are called by their paths', () => {
  expect(portNames([['a', 'text'], ['b', 'text'], ['prompt']])).toEqual(['a.text', 'b.text', 'Prompt'])
})

test.each([
  ['slug/text-to-image', ['images', 0, 'url'], 'text', 'image'],
  ['slug/text-to-image', ['images', everyItem, 'url'], 'list', 'list'],
  ['slug/text-to-image', ['seed_used'], 'integer', 'number'],
  ['std/audio-speech', ['audio_url'], 'text', 'audio'],
  ['slug/text-to-video', ['video', 'url'], 'text', 'video'],
  ['no/task', ['url'], 'text', 'file'],
  ['std/chat-completion', ['choices', 0, 'message', 'content'], 'text', 'text'],
  ['std/chat-completion', ['choices'], 'list', 'list'],
  ['json/select', [], 'any', 'any'],
] satisfies [string, Path, string, PortKind][])('of %s the output %j with %s carries %s', (task, path, field, kind) => {
  expect(kindOfOutput(task, path, field)).toBe(kind)
})

const task = (id: string, input: object, output: object, media: string[] = [], category = 'image') =>
  ({
    id,
    category,
    media_fields: media,
    input_schema: { type: 'object', ...input },
    output_schema: { type: 'object', ...output },
  }) as unknown as TaskFacts

const url = { type: 'string' }
const images = { properties: { images: { type: 'array', items: { type: 'object', properties: { url } } } } }
const paint = task(
  'slug/text-to-image',
  { properties: { prompt: url, seed: { type: 'integer' } }, required: ['prompt'] },
  images,
)
const change = task(
  'slug/image-to-image',
  { properties: { prompt: url, image_url: url, strength: { type: 'number' } }, required: ['prompt', 'image_url'] },
  images,
  ['image_url'],
)
const hear = task(
  'std/audio-transcription',
  { properties: { file: url, known_speaker_references: { type: 'array', items: url } } },
  { properties: { text: url } },
  ['file', 'known_speaker_references'],
  'audio',
)
const choose = task('json/select', { properties: { input: {} }, required: ['input'] }, {})

test.each([
  [paint, ['prompt'], { kind: 'text', values: ['text'] }],
  [paint, ['seed'], { kind: 'number', values: ['integer'] }],
  [change, ['image_url'], { kind: 'image', values: ['text'] }],
  [hear, ['file'], { kind: 'audio', values: ['text'] }],
  [hear, ['known_speaker_references'], { kind: 'audio', values: ['list'] }],
  [choose, ['input'], { kind: 'any', values: [] }],
  [undefined, ['prompt'], { kind: 'any', values: [] }],
] satisfies [TaskFacts | undefined, Path, object][])('input %#', (of, path, expected) => {
  expect(takenBy(of, path)).toEqual(expected)
})

test.each([
  ['text', 'text', ['text'], false, 'fits'],
  ['image', 'image', ['text'], false, 'fits'],
  ['file', 'image', ['text'], false, 'fits'],
  ['text', 'image', ['text'], false, 'possible'],
  ['audio', 'image', ['text'], false, 'refused'],
  ['number', 'image', ['text'], false, 'refused'],
  ['list', 'audio', ['list'], false, 'possible'],
  ['image', 'text', ['text'], false, 'possible'],
  ['image', 'number', ['integer'], false, 'refused'],
  ['text', 'number', ['integer'], false, 'refused'],
  ['number', 'number', ['integer'], false, 'fits'],
  ['number', 'text', ['text'], false, 'refused'],
  ['number', 'text', ['text'], true, 'fits'],
  ['list', 'text', ['text', 'list'], false, 'fits'],
  ['any', 'text', ['text'], false, 'possible'],
  ['object', 'any', [], false, 'fits'],
] satisfies [PortKind, PortKind, FieldKind[], boolean, string][])(
  '%s to %s %j (words %s): %s',
  (given, kind, values, isText, fit) => {
    expect(fitOf(given, { kind, values }, isText)).toBe(fit)
  },
)

test.each([
  ['string', 'text'],
  ['array', 'list'],
  ['image', 'image'],
  [undefined, 'any'],
] as const)('a parameter of type %s is %s', (type, kind) => {
  expect(kindOfParameter(type)).toBe(kind)
})

const port = (card: string, isOutput: boolean, kind: PortKind, more: Partial<PortFacts> = {}): PortFacts => ({
  card,
  handle: '',
  isOutput,
  role: 'value',
  name: isOutput ? 'Answer' : 'Seed',
  kind,
  values: kind === 'number' ? ['integer'] : ['text'],
  isText: false,
  ...more,
})
const drawnFrom = (one: PortFacts, blocked: string[] = []): Drawn => ({ port: one, blocked: new Set(blocked) })
const answer = port('a', true, 'text')

test.each([
  ['a port at the same side is no end', answer, port('b', true, 'text'), undefined],
  ['one that fits', answer, port('b', false, 'text'), { fit: 'fits' }],
  [
    'another kind',
    answer,
    port('b', false, 'number'),
    { fit: 'refused', why: 'Seed takes a number, and Answer is text.' },
  ],
  [
    'backwards the same is said',
    port('b', false, 'number'),
    answer,
    { fit: 'refused', why: 'Seed takes a number, and Answer is text.' },
  ],
  ['its own result', answer, port('a', false, 'text'), { fit: 'refused', why: 'A node cannot take its own result.' }],
  [
    'a circle',
    answer,
    port('before', false, 'text'),
    { fit: 'refused', why: 'before runs before a, so it cannot take its result.' },
  ],
  ['an order', port('a', true, 'any', { role: 'order' }), port('b', false, 'any', { role: 'order' }), { fit: 'fits' }],
  ['a value orders too', answer, port('b', false, 'any', { role: 'order' }), { fit: 'possible' }],
] as const)('%s', (_, from, end, expected) => {
  expect(judgeEnd(drawnFrom(from, ['before']), end)).toEqual(expected)
})

test.each([
  ['text', answer, paint, inputHandle(['prompt'])],
  ['an image', port('a', true, 'image'), change, inputHandle(['image_url'])],
  ['an image, and a task that needs a text', port('a', true, 'image'), paint, undefined],
  ['an image, and a task without one', port('a', true, 'image'), hear, undefined],
  ['a number', port('a', true, 'number'), paint, inputHandle(['seed'])],
  ['an order', port('a', true, 'any', { role: 'order' }), paint, orderHandles.after],
  ['an input for an image', port('a', false, 'image'), paint, outputHandle('images[0].url')],
  ['an input for audio', port('a', false, 'audio'), paint, undefined],
  ['a list', port('a', false, 'list', { role: 'list', values: ['list'] }), paint, outputHandle('images')],
  ['an input and a task of which nothing is known', port('a', false, 'text'), choose, outputHandle('')],
] as const)('a line from %s is led to %#', (_, from, to, handle) => {
  expect(entryOf(from, to)).toBe(handle)
})

import { expect, test } from 'vitest'
import { modelTasks as tasks } from '../../../core/schemas/task.ts'
import { taskRecord } from '../../../core/tasks/registry.ts'
import { optionalFirst } from '../../../core/tasks/task.ts'
import {
  filesOf,
  moderationsOf,
  rankingOf,
  similarities,
  textOf,
} from '../../../server/console/app/components/result/result-facts.ts'
import { apiMessages, conversationOf } from '../../../server/console/app/pages/chat/message/api-messages.ts'
import { apart, emptyAnswer, withChunk } from '../../../server/console/app/pages/chat/message/chunks.ts'
import type { Message } from '../../../server/console/app/pages/chat/message/message.ts'
import {
  enteredOf,
  type FormTask,
  fieldsOf,
  formRequest,
} from '../../../server/console/app/pages/playground/form/fields.ts'
import { isSlider } from '../../../server/console/app/pages/playground/form/sliders.ts'
import { languages, sampleOf } from '../../../server/console/app/pages/playground/samples.ts'
import { schemasOfTask } from '../../../server/views/task-schemas.ts'

/** What the playground does without a browser: forms of the real tasks, conversations, results. */
const formTask = (id: (typeof tasks)[number]): FormTask => {
  const { input } = schemasOfTask(id)
  const { isMediaPath, form } = taskRecord(id)
  const media_fields = Object.keys(input.properties ?? {}).filter(name => isMediaPath([name]) || isMediaPath([name, 0]))
  const more_fields = optionalFirst.filter(name => !form.first.includes(name))
  return { form: { hidden_fields: form.hidden, more_fields }, media_fields, input_schema: { ...input } }
}
const kindsOf = (id: (typeof tasks)[number]) =>
  Object.fromEntries(fieldsOf(formTask(id)).map(({ name, kind, main }) => [name, main ? kind : `more ${kind}`]))

test.each(tasks)('the form of %s shows every required field, with words for people', id => {
  const fields = fieldsOf(formTask(id))
  const names = fields.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(schemasOfTask(id).input.required ?? []))
  expect(new Set(names).size).toBe(names.length)
  expect(new Set(fields.map(({ label }) => label)).size, 'labels').toBe(names.length)
  for (const { label, hint, kind, options } of fields) {
    expect(label).toMatch(/^[A-Z][^_`]*$/)
    expect(hint).not.toBe('')
    if (kind === 'choice') expect(options.length).toBeGreaterThan(0)
  }
  const mainFirst = fields.map(({ main }) => main)
  expect(mainFirst).toEqual(mainFirst.toSorted((a, b) => Number(b) - Number(a)))
})

test('controls fit the values', () => {
  expect(kindsOf('slug/inpainting')).toMatchObject({
    image_url: 'media',
    mask_url: 'media',
    prompt: 'text',
    preset: 'choice',
    num_images: 'number',
    seed: 'number',
    strength: 'number',
    negative_prompt: 'more text',
    image_size: 'more shape',
    enable_prompt_expansion: 'more yes-no',
  })
  expect(kindsOf('std/embeddings')).toMatchObject({ input: 'texts', dimensions: 'more number' })
  expect(kindsOf('std/rerank')).toMatchObject({ query: 'text', documents: 'texts', top_n: 'more number' })
  expect(kindsOf('std/audio-speech')).toMatchObject({ input: 'text', voice: 'line', response_format: 'choice' })
  expect(kindsOf('std/audio-transcription')).toMatchObject({ url: 'media', language: 'line' })
  expect(kindsOf('std/chat-completion')).toMatchObject({ tools: 'more json', temperature: 'more number' })
  expect(kindsOf('std/completion')).toMatchObject({ prompt: 'text' })
})

test('a number has the default that its description names, and a slider where both ends are near', () => {
  const numbers = fieldsOf(formTask('slug/inpainting')).filter(({ kind }) => kind === 'number')
  const found = numbers.map(field => [field.name, field.byDefault, isSlider(field)])
  expect(Object.fromEntries(found.map(([name, ...facts]) => [name, facts]))).toMatchObject({
    strength: [0.8, true],
    num_inference_steps: [30, true],
    guidance_scale: [5, true],
    num_images: [1, true],
    seed: [undefined, false],
    width: [undefined, false],
  })
})

test('a form sends what was entered, and nothing else', () => {
  const fields = fieldsOf(formTask('slug/text-to-image'))
  const entered = { prompt: 'a cat', seed: '7', guidance_scale: '1.5', preset: '', enable_prompt_expansion: 'no' }
  const { request, errors } = formRequest(fields, entered)
  expect(request).toEqual({ prompt: 'a cat', seed: 7, guidance_scale: 1.5, enable_prompt_expansion: false })
  expect(errors).toEqual({})
  expect(formRequest(fields, enteredOf(fields, request)).request).toEqual(request)
  const chat = fieldsOf(formTask('std/chat-completion'))
  const tools = [{ type: 'function', function: { name: 'now' } }]
  const asked = { messages: [], tools, stop: ['a', 'b'], temperature: 0 }
  expect(formRequest(chat, enteredOf(chat, asked)).request).toEqual(asked)
})

test('what cannot be sent is named', () => {
  const fields = fieldsOf(formTask('slug/text-to-image'))
  expect(formRequest(fields, { seed: 'x' }).errors).toEqual({ prompt: 'missing', seed: 'number' })
  const chat = fieldsOf(formTask('std/chat-completion'))
  expect(formRequest(chat, { messages: '[]', tools: '{' }).errors).toEqual({ tools: 'json' })
})

test('a stream becomes an answer', () => {
  const chunks = [
    { choices: [{ delta: { role: 'assistant', content: '' } }] },
    { choices: [{ delta: { reasoning_content: 'Hm. ' } }] },
    { choices: [{ delta: { content: 'It is ' } }] },
    { choices: [{ delta: { content: 'noon.' } }] },
    { choices: [{ delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'now', arguments: '' } }] } }] },
    { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"zone":' } }] } }] },
    { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '"UTC"}' } }] } }] },
    { choices: [], usage: { prompt_tokens: 5, completion_tokens: 9 } },
  ]
  let answer: Message = emptyAnswer
  for (const [at, chunk] of chunks.entries()) answer = withChunk(answer, chunk, 10 * (at + 1))
  expect(answer).toEqual({
    role: 'assistant',
    text: 'It is noon.',
    reasoning: 'Hm. ',
    toolCalls: [{ id: 'a', name: 'now', arguments: '{"zone":"UTC"}' }],
    figures: { firstMs: 20, totalMs: 80, inputTokens: 5, outputTokens: 9 },
  })
  expect(withChunk(emptyAnswer, { error: { message: 'The engine ended.' } }, 1).failure).toBe('The engine ended.')
})

test('a conversation is the same after it was sent and read again', () => {
  const messages: Message[] = [
    {
      role: 'user',
      text: 'What is this?',
      files: [
        { id: 'file-1', kind: 'image', name: '' },
        { id: 'file-2', kind: 'audio', name: 'audio.mp3' },
        { id: 'file-3', kind: 'text', name: 'file-3' },
      ],
    },
    { role: 'assistant', text: '', toolCalls: [{ id: 'a', name: 'look', arguments: '{}' }] },
    { role: 'tool', text: 'A cat.', toolCallId: 'a' },
    { role: 'assistant', text: 'A cat.' },
  ]
  expect(conversationOf(apiMessages('Be brief.', messages))).toEqual({ system: 'Be brief.', messages })
  expect(apiMessages('  ', [{ role: 'assistant', text: '', failure: 'It broke.' }])).toEqual([])
})

test.each([
  [{ text: '<think>Hm.</think>\nNoon.' }, { text: 'Noon.', reasoning: 'Hm.' }],
  [{ text: '<think>Still thin' }, { text: '', reasoning: 'Still thin' }],
  [
    { text: 'Noon.', reasoning: 'Hm.' },
    { text: 'Noon.', reasoning: 'Hm.' },
  ],
  [{ text: 'The tag <think> is text.' }, { text: 'The tag <think> is text.', reasoning: '' }],
])('reasoning of %j stands apart', (message, parts) => {
  expect(apart(message)).toEqual(parts)
})

test.each(languages)('an answer without tool calls has none in the %s sample', language => {
  const messages = apiMessages('', [
    { role: 'user', text: 'Hello' },
    { role: 'assistant', text: 'Hi' },
  ])
  const task = 'std/chat-completion'
  const sample = sampleOf(language, { origin: 'http://x', task, path: '/p', model: 'm', inputs: { messages } })
  expect(sample).toContain('"Hi"')
  expect(sample).not.toContain('tool_calls')
})

test('results become what people read', () => {
  const vectors = [
    [1, 0],
    [0, 2],
    [3, 3],
    [0, 0],
  ]
  const [first] = similarities(vectors)
  expect(first!.map(value => value.toFixed(3))).toEqual(['1.000', '0.000', '0.707', '0.000'])
  const ranked = rankingOf({ results: [{ index: 1, relevance_score: 0.9 }] }, { documents: ['a', { text: 'b' }] })
  expect(ranked).toEqual([{ index: 1, score: 0.9, text: 'b' }])
  const url = 'http://box/files/file-1/image.png?exp=1&sig=x'
  expect(filesOf({ images: [{ url, file_name: 'image.png', width: 64, height: 32 }] })).toEqual([
    { kind: 'image', url, name: 'image.png', id: 'file-1', size: [64, 32] },
  ])
  expect(filesOf({ audio_url: url, format: 'wav' })[0]).toMatchObject({ kind: 'audio', name: 'speech.wav' })
  expect(filesOf(null)).toEqual([])
  expect(moderationsOf({ results: [{ flagged: true, category_scores: { a: 0.1, b: 0.9 } }] })[0]).toEqual({
    flagged: true,
    categories: [
      { name: 'b', score: 0.9 },
      { name: 'a', score: 0.1 },
    ],
  })
  expect(textOf({ text: 'said' })).toBe('said')
  expect(textOf({ choices: [{ message: { content: 'chatted' } }] })).toBe('chatted')
  expect(textOf({ data: [] })).toBeUndefined()
})

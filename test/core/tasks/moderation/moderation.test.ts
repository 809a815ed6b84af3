import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { ModerationResponse, moderationCategories } from '../../../../core/schemas/moderation.ts'
import { prepareInputs, shape } from '../../../../core/tasks/preparation.ts'
import { routesOf } from '../../../../gpu/presets/routes.ts'
import { catalogOf } from '../_catalog.ts'

const routes = routesOf({ openaiText: 'all', classification: 'all' })
const byChat = catalogOf({ routes }, { tasks: ['std/chat-completion', 'std/moderation'] })
const classifier = catalogOf({ routes }, { tasks: ['std/moderation'] })
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))
const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
const chat = (content: string | null) => ({ choices: [{ message: { content } }], usage })
const scores = (more: object = {}) =>
  JSON.stringify({ ...Object.fromEntries(moderationCategories.map(category => [category, 0])), ...more })

function through(input: unknown, catalog: typeof byChat, ...answers: object[]) {
  const prepared = prepareInputs('std/moderation', { input }, catalog)
  const shaped = shape(answers.map(bytes), prepared.answerFormat)
  const body = ModerationResponse.parse(JSON.parse(shaped.body as string))
  return { prepared, body, usage: shaped.usage }
}
const failureOf = (run: () => unknown): Failure => {
  try {
    run()
  } catch (thrown) {
    return thrown as Failure
  }
  throw new Error('was accepted')
}

test('a chat model judges each text', () => {
  const {
    prepared,
    body,
    usage: used,
  } = through(
    ['a', 'b'],
    byChat,
    chat(scores({ violence: 0.7, hate: 2 })),
    chat(`<think>{}</think>\n\`\`\`json\n${scores()}\n\`\`\``),
  )
  expect(prepared.path).toBe('/v1/chat/completions')
  expect(prepared.bodies.map(text => JSON.parse(text as string) as object)).toMatchObject([
    { messages: [{ role: 'system' }, { role: 'user', content: 'a' }], response_format: { type: 'json_schema' } },
    { messages: [{ role: 'system' }, { role: 'user', content: 'b' }], temperature: 0 },
  ])
  expect(body).toMatchObject({ id: expect.stringMatching(/^modr-/) as string, model: 'm' })
  expect(body.results.map(({ flagged }) => flagged)).toEqual([true, false])
  expect(body.results[0]).toMatchObject({
    categories: { violence: true, hate: true, sexual: false },
    category_scores: { violence: 0.7, hate: 1, sexual: 0 },
    category_applied_input_types: { violence: ['text'], hate: ['text'] },
  })
  expect(used).toMatchObject({ inputTokens: 10, outputTokens: 4 })
})

test('parts of text and images are one content', () => {
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
  ]
  const { prepared, body } = through(parts, byChat, chat(scores()))
  expect(prepared.images).toMatchObject([{ param: 'input[1].image_url.url', value: 'https://x.test/a.png' }])
  expect(body.results).toHaveLength(1)
  expect(body.results[0]!.category_applied_input_types).toMatchObject({ violence: ['text', 'image'], hate: ['text'] })
})

test.each<[string, object[], boolean, object]>([
  ['a harmless label', [{ label: 'LABEL_0', probs: [0.9, 0.1] }], false, { harassment: 0 }],
  ['a label of a category', [{ label: 'Hate Speech', probs: [0.1, 0.9] }], true, { hate: 0.9 }],
  ['a weak label', [{ label: 'toxic', probs: [0.4, 0.3, 0.3] }], false, { harassment: 0.4 }],
  ['a label of no category', [{ label: 'spam', probs: [0.2, 0.8] }], true, { harassment: 0 }],
])('a classifier answers with %s', (_, data, flagged, expected) => {
  const { prepared, body } = through('a', classifier, { data, usage })
  expect([prepared.path, JSON.parse(prepared.bodies[0] as string)]).toEqual(['/classify', { model: 'm', input: ['a'] }])
  expect(body.results).toMatchObject([{ flagged, category_scores: expected, label: { score: expect.any(Number) } }])
})

test.each<[string, object, typeof byChat, string, string]>([
  ['no model', { input: 'a' }, catalogOf({}, { tasks: ['std/chat-completion'] }), 'model_not_found', 'model'],
  ['another model', { input: 'a', model: 'none' }, byChat, 'model_not_found', 'model'],
  [
    'a chat model without the task',
    { input: 'a', model: 'm' },
    catalogOf({}, { tasks: ['std/chat-completion'] }),
    'unsupported_task',
    'model',
  ],
  [
    'an image for a classifier',
    { input: [{ type: 'image_url', image_url: { url: 'data:' } }] },
    classifier,
    'unsupported_parameter',
    'input[0]',
  ],
  [
    'an image for a model of texts',
    { input: [{ type: 'image_url', image_url: { url: 'data:' } }] },
    catalogOf({ routes, features: new Set(['json_schema']) }),
    'unsupported_parameter',
    'input[0]',
  ],
  ['nothing', { input: [] }, byChat, 'invalid_value', 'input'],
])('refuses %s', (_, body, catalog, code, param) =>
  expect(failureOf(() => prepareInputs('std/moderation', body, catalog))).toMatchObject({ code, param }),
)

test('the names of OpenAI stand for the first model that moderates', () =>
  expect(prepareInputs('std/moderation', { input: 'a', model: 'omni-moderation-latest' }, byChat).modelId).toBe('m'))

test.each([
  ['a chat without scores', byChat, chat('I cannot do that.')],
  ['an empty chat', byChat, chat(null)],
  ['too few labels', classifier, { data: [] }],
  ['a label without probability', classifier, { data: [{ label: 'safe' }] }],
])('%s is a fault of the engine', (_, catalog, answer) =>
  expect(failureOf(() => through('a', catalog, answer)).code).toBe('worker_error'),
)

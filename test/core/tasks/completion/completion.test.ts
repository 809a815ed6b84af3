import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { prepareCompletion, shapeCompletion } from '../../../../core/tasks/completion/completion.ts'
import { catalogOf } from '../_catalog.ts'

const base = { model: 'm', prompt: 'Once' }
const sent = (more: object, catalog = catalogOf()) =>
  prepareCompletion({ ...base, ...more }, catalog).bodies.map(
    body => JSON.parse(body as string) as Record<string, unknown>,
  )
function refusal(more: object, catalog = catalogOf()): [string, string | undefined] {
  try {
    sent(more, catalog)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Failure)
    return [(thrown as Failure).code, (thrown as Failure).param]
  }
  throw new Error('was taken')
}

test.each<[string, object, object]>([
  ['what no list names is dropped', { api_base: 'x', user: 'u', chat_template: 'y' }, {}],
  ['nulls are as good as absent', { temperature: null, suffix: null, n: null }, {}],
  ['16 tokens where nothing is said', {}, {}],
  ['as many as are asked for', { max_tokens: 3 }, { max_tokens: 3 }],
  ['what says nothing is left out', { n: 1, best_of: 1, echo: false, suffix: '' }, {}],
  [
    'what says something is not',
    { n: 2, best_of: 3, echo: true, suffix: 's' },
    { n: 2, best_of: 3, echo: true, suffix: 's' },
  ],
  ['token ids are a prompt', { prompt: [1, 2] }, { prompt: [1, 2] }],
  ['several prompts are one request', { prompt: ['a', 'b'] }, { prompt: ['a', 'b'] }],
  ['a stream asks for its usage', { stream: true }, { stream: true, stream_options: { include_usage: true } }],
])('%s', (_, more, expected) => expect(sent(more)).toEqual([{ ...base, max_tokens: 16, ...expected }]))

test('an engine that takes one prompt at a time gets one request for each', () => {
  const catalog = catalogOf({ promptLists: false })
  expect(sent({ prompt: ['a', 'b'] }, catalog).map(body => body.prompt)).toEqual(['a', 'b'])
  expect(sent({ prompt: [[1], [2]] }, catalog).map(body => body.prompt)).toEqual([[1], [2]])
  expect(sent({ prompt: [1, 2] }, catalog).map(body => body.prompt)).toEqual([[1, 2]])
  expect(refusal({ prompt: ['a', 'b'], stream: true }, catalog)).toEqual(['unsupported_parameter', 'prompt'])
})

test.each<[string, object, [string, string]]>([
  ['no prompt', { prompt: undefined }, ['missing_required_parameter', 'prompt']],
  ['an empty one', { prompt: '' }, ['invalid_value', 'prompt']],
  ['logprobs as in chats', { logprobs: true }, ['invalid_type', 'logprobs']],
  ['nothing to say and nothing to echo', { max_tokens: 0 }, ['invalid_value', 'max_tokens']],
  ['fewer to choose from than to return', { n: 3, best_of: 2 }, ['invalid_value', 'best_of']],
  ['the best of a stream', { best_of: 2, stream: true }, ['invalid_value', 'best_of']],
  ['stream_options without stream', { stream_options: {} }, ['invalid_value', 'stream_options']],
])('%s is refused', (_, more, expected) => expect(refusal(more)).toEqual(expected))

test.each(['echo', 'suffix', 'best_of', 'logprobs', 'n', 'top_k'])('an engine without %s refuses it by name', name => {
  const value = { echo: true, suffix: 's', best_of: 2, logprobs: 0, n: 2, top_k: 5 }[name]
  expect(refusal({ [name]: value }, catalogOf({ features: new Set() }))).toEqual(['unsupported_parameter', name])
})

test('an embedding model is refused with the models for completions', () => {
  const catalog = new Map([...catalogOf({}, { tasks: ['std/embeddings'] }), ...catalogOf({}, { id: 'writer' })])
  expect(() => prepareCompletion(base, catalog)).toThrow(/does not do completions\. For completions there is 'writer'/)
})

const answer = (text: unknown, more: object = {}) =>
  Buffer.from(
    JSON.stringify({ choices: [{ text, index: 0 }], usage: { prompt_tokens: 1, completion_tokens: 2 }, ...more }),
  )
const answerFormat = { task: 'std/completion' as const, modelId: 'm', includeUsage: false, choices: 1 }

test('answers to several requests become one, and their usage is added', () => {
  const { body, usage } = shapeCompletion([answer('x'), answer('y')], answerFormat)
  expect(JSON.parse(body as string)).toMatchObject({
    object: 'text_completion',
    model: 'm',
    choices: [
      { index: 0, text: 'x', logprobs: null, finish_reason: 'stop' },
      { index: 1, text: 'y', logprobs: null, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 2, completion_tokens: 4, total_tokens: 6 },
  })
  expect(usage).toMatchObject({ inputTokens: 2, outputTokens: 4 })
})

test.each([
  ['no text', answer(undefined)],
  ['text that is none', answer({ a: 1 })],
  ['no choices', answer('x', { choices: [] })],
])('%s is the engine’s fault', (_, bytes) =>
  expect(() => shapeCompletion([bytes], answerFormat)).toThrow(
    expect.objectContaining({ code: 'worker_error' }) as Error,
  ),
)

test('an engine that saves conversations is told which it must not save', () => {
  const saves = catalogOf({ savesConversations: true })
  expect(sent({ store: false }, saves)[0]).toMatchObject({ store: false })
  expect(sent({ store: true }, saves)[0]).not.toHaveProperty('store')
  expect(sent({ store: false })[0]).not.toHaveProperty('store')
  expect(prepareCompletion({ ...base, store: false }, saves).unstored).toBe(true)
  expect(prepareCompletion({ ...base, n: 2 }, saves).several).toBe(true)
  expect(prepareCompletion({ ...base, n: 1 }, saves)).not.toHaveProperty('several')
})

import { expect, test } from 'vitest'
import { Limits } from '../../../core/config.ts'
import type { TextTask } from '../../../core/schemas/task.ts'
import { answerBound } from '../../../core/tasks/answer-bound.ts'
import { prepareInputs } from '../../../core/tasks/preparation.ts'
import { catalogOf } from './_catalog.ts'

const limits = Limits.parse({ engine_answer: 1000, engine_embedding: 100 })
const texts = (count: number) => Array.from({ length: count }, (_, at) => `text ${at}`)

test.each<[string, TextTask, object, number]>([
  ['a chat', 'std/chat-completion', { messages: [{ role: 'user', content: 'a' }] }, 1000],
  ['a few vectors', 'std/embeddings', { input: texts(10) }, 1000],
  ['many vectors', 'std/embeddings', { input: texts(2048) }, 204_800],
  ['one vector of many tokens', 'std/embeddings', { input: texts(2048).map((_, at) => at) }, 1000],
  ['pairs scored by vectors', 'std/score', { text_1: 'a', text_2: texts(99) }, 10_000],
])('%s', (_, task, inputs, bytes) =>
  expect(
    answerBound(
      prepareInputs(task, { model: 'm', ...inputs }, catalogOf({ scoreBy: 'embeddings' })).answerFormat,
      limits,
    ),
  ).toBe(bytes),
)

test('at the default 2,048 vectors of 4,096 numbers of 22 characters each fit', () =>
  expect(2048 * Limits.parse({}).engine_embedding).toBeGreaterThan(2048 * 4096 * 22))

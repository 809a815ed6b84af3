import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import {
  afterReplacement,
  droppableBody,
  droppableMessages,
  shortener,
} from '../../../../core/tasks/chat/truncation.ts'

/** Messages by their initials: s(ystem), u(ser), a(nswer), c(all of a tool), t(ool's result). */
const roles = { s: 'system', u: 'user', a: 'assistant', c: 'assistant', t: 'tool' } as const
const messagesOf = (initials: string) =>
  initials.split('').map((initial, at) => ({
    role: roles[initial as keyof typeof roles],
    content: `${initial}${at}`,
    ...(initial === 'c' ? { tool_calls: [{ id: String(at) }] } : {}),
  }))

test.each<[initials: string, groups: number[][]]>([
  ['u', []],
  ['su', []],
  ['suau', [[1, 2]]],
  [
    'uauau',
    [
      [0, 1],
      [2, 3],
    ],
  ],
  ['uuu', [[0], [1]]],
  ['auau', [[0], [1, 2]]],
  ['sucta', [[2, 3]]],
  [
    'suctctct',
    [
      [2, 3],
      [4, 5],
    ],
  ],
  ['ucttctt', [[1, 2, 3]]],
  ['uctauct', [[0, 1, 2, 3]]],
  ['usau', [[0, 2]]],
  [
    'sctctct',
    [
      [1, 2],
      [3, 4],
    ],
  ],
  ['aaa', [[0], [1]]],
  ['tua', [[0]]],
])('%s: %j', (initials, groups) => expect(droppableMessages(messagesOf(initials))).toEqual(groups))

const refused = (prompt_tokens?: number, context_length = 0) =>
  new Failure('context_length_exceeded', 'Too long.', prompt_tokens ? { facts: { prompt_tokens, context_length } } : {})
const left = (text: string | undefined): string =>
  text === undefined
    ? 'nothing'
    : (JSON.parse(text) as { messages: { content: string }[] }).messages.map(({ content }) => content[0]).join('')

/** A conversation whose messages are equally long. */
const body = (initials: string, answerTokens: number | null = null) =>
  droppableBody(
    {
      model: 'm',
      messages: messagesOf(initials).map(one => ({ ...one, content: one.content.padEnd(3_000, 'é') })),
      x: 1,
    },
    answerTokens,
  )

test('the body keeps everything else, and what is left out follows from the counts of the engine', () => {
  const { text, droppable } = body('suauauau')
  expect(JSON.parse(text)).toMatchObject({ model: 'm', x: 1, messages: { length: 8 } })
  const shorter = shortener(text, droppable)
  // A quarter of the context is kept for the answer: 8000 tokens become at most 4500.
  expect(left(shorter(refused(8_000, 6_000)))).toBe('suau')
  expect(left(shorter(refused(6_100, 6_000)))).toBe('su')
  expect(shorter(refused(6_050, 6_000))).toBeUndefined()
})

test('a short answer needs less room', () => {
  const { text, droppable } = body('suauauau', 100)
  expect(left(shortener(Buffer.from(text), droppable)(refused(8_000, 6_200)))).toBe('suauau')
})

test('without counts half of what is left goes each time, and all of it at last', () => {
  const { text, droppable } = body(`${'ua'.repeat(60)}u`)
  const shorter = shortener(text, droppable)
  const lengths = Array.from({ length: 6 }, () => shorter(refused())).map(rest => (rest ? left(rest).length : 0))
  expect(lengths).toEqual([61, 31, 15, 7, 1, 0])
})

test('another failure changes nothing', () => {
  const { text, droppable } = body('uau')
  expect(shortener(text, droppable)(new Failure('invalid_value', 'No.'))).toBeUndefined()
})

test('a system message inside a turn stays', () => {
  const { text, droppable } = body('usau')
  expect(left(shortener(text, droppable)(refused(9_000, 1_000)))).toMatch(/^sa?u$/)
  const all = shortener(text, droppable)
  all(refused(9_000, 1_000))
  expect(left(all(refused(9_000, 1_000)) ?? '{"messages":[{"content":"s"},{"content":"u"}]}')).toBe('su')
})

test('text that grows before, inside or after a part moves the parts', () => {
  const { text, droppable } = droppableBody(
    { model: 'm', messages: messagesOf('suau').map(one => ({ ...one, x: '{mark}' })) },
    null,
  )
  const at = text.indexOf('{mark}', text.indexOf('u1'))
  const grown = `${text.slice(0, at)}${'y'.repeat(900)}${text.slice(at + 6)}`
  expect(left(shortener(grown, afterReplacement(droppable, at, 894))(refused(9_000, 10)))).toBe('su')
})

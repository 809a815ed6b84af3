import { describe, expect, test } from 'vitest'
import { chooseSlot } from '../../../gpu/requests/choose-slot.ts'
import { commonBytes, promptMarks } from '../../../gpu/requests/prompt-marks.ts'

const key = 'key'
const body = (messages: object[], more: object = {}) =>
  JSON.stringify({ model: 'm', messages, temperature: 0, ...more })
const user = (content: string) => ({ role: 'user', content })
const words = (word: string, count: number) => `${word} `.repeat(count)

describe('the common beginning of two prompts', () => {
  const one = [user(words('one', 100))]
  const rows: [what: string, earlier: string, later: string, common: number | 'all'][] = [
    ['a conversation that goes on', body(one), body([...one, user('and now?')]), 'all'],
    ['the same one again', body(one), body(one), 'all'],
    ['another limit and seed', body(one, { seed: 1 }), body(one, { max_tokens: 5 }), 'all'],
    ['quotes and brackets in the text', body([user('a "]" \\" [')]), body([user('a "]" \\" ['), user('b')]), 'all'],
    [
      'content in parts',
      body([{ role: 'user', content: [{ type: 'text', text: 'x' }] }]),
      body([{ role: 'user', content: [{ type: 'text', text: 'x' }] }, user('b')]),
      'all',
    ],
    ['a completion that goes on', '{"prompt":"once upon"}', '{"prompt":"once upon a time"}', 'all'],
    [
      'the same instructions, another question',
      body([user(words('long', 200)), user('a')]),
      body([user(words('long', 200)), user('b')]),
      768,
    ],
    ['other first words', body([user('x')]), body([user('y')]), 0],
    ['a beginning without the whole conversation', body([...one, user('b')]), body(one), 384],
  ]
  test.each(rows)('%s', (_what, earlier, later, common) => {
    const known = promptMarks(earlier, key)!
    const prompt = promptMarks(later, key, [known.length])!
    expect(commonBytes(prompt, known)).toBe(common === 'all' ? known.length : common)
    expect(commonBytes(promptMarks(Buffer.from(later), key, [known.length])!, known)).toBe(commonBytes(prompt, known))
  })

  test('is not seen with another key, and names are short', () => {
    const marks = promptMarks(body([user(words('long', 300_000))]), key)!
    expect(commonBytes(promptMarks(body([user(words('long', 300_000))]), 'other')!, marks)).toBe(0)
    expect(marks).toMatchObject({ length: 0, end: '' })
    expect(marks.powers).toHaveLength(11)
  })

  test.each(['{"input":"text"}', '{"messages":3}', ''])('%s has no prompt', text => {
    expect(promptMarks(text, key)).toBeUndefined()
  })
})

describe('the slot of a prompt', () => {
  const slot = (free: boolean, common: number, length: number, usedAt: number) => ({ free, common, length, usedAt })
  test.each([
    ['has the conversation that goes on', [slot(true, 0, 50, 1), slot(true, 80, 80, 2)], 1],
    ['is not one that is in use', [slot(false, 80, 80, 1), slot(true, 0, 50, 2)], 1],
    ['is the least recently used one for a new conversation', [slot(true, 0, 50, 2), slot(true, 0, 50, 1)], 1],
    ['is an empty one rather than that of a longer conversation', [slot(true, 10, 50, 1), slot(true, 0, 0, 0)], 1],
  ])('%s', (_what, slots, chosen) => {
    expect(chooseSlot(slots)).toBe(slots[chosen])
  })
  test('is none if all are in use', () => {
    expect(chooseSlot([slot(false, 0, 0, 0)])).toBeUndefined()
  })
})

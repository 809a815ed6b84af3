import { expect, test } from 'vitest'
import type { SplitResult } from '../../../../core/schemas/steps.ts'
import { step } from './_step.ts'

const split = (text: string, inputs: object = {}) => step<SplitResult>('text/split', { text, ...inputs })

const sentences = 'One two three. Four five six. Seven eight nine.'

test.each<[string, string, object, string[]]>([
  ['an empty text has no chunks', '', {}, []],
  ['a short text is one chunk', 'Hello.', {}, ['Hello.']],
  ['characters', 'abcdefg', { by: 'characters', size: 3 }, ['abc', 'def', 'g']],
  ['characters keep white space', 'a b c', { by: 'characters', size: 2 }, ['a ', 'b ', 'c']],
  ['characters of two code units stay whole', '😀😀😀', { by: 'characters', size: 2 }, ['😀😀', '😀']],
  ['an overlap', 'abcdefg', { by: 'characters', size: 4, overlap: 2 }, ['abcd', 'cdef', 'efg']],
  ['lines', 'a\nb\r\n\nc', { by: 'lines', size: 2 }, ['a\nb', '\nc']],
  ['lines with an overlap', 'a\nb\nc', { by: 'lines', size: 2, overlap: 1 }, ['a\nb', 'b\nc']],
  ['paragraphs', 'a\nb\n\n  \nc\n \nd\n', { by: 'paragraphs', size: 1 }, ['a\nb', 'c', 'd']],
  ['tokens end with a sentence', sentences, { size: 12 }, ['One two three. Four five six.', 'Seven eight nine.']],
  ['tokens end with a paragraph', 'aaa bbb\n\nccc ddd eee', { size: 5 }, ['aaa bbb', 'ccc ddd eee']],
  ['words that are too long are cut', 'aaaaaaaaaaaaa b', { size: 2 }, ['aaaaaa', 'aaaaaa', 'a b']],
  ['scripts without spaces are cut', '这是一个测试', { size: 4 }, ['这是一个', '测试']],
])('%s', async (_, text, inputs, chunks) => {
  expect(await split(text, inputs)).toEqual({ chunks, count: chunks.length })
})

test('every token is in a chunk, and no chunk is too large', async () => {
  const text = Array.from({ length: 2_000 }, (_, at) => `word${at}${at % 9 === 0 ? '.\n' : ''}`).join(' ')
  const { chunks } = await split(text, { size: 100 })
  expect(chunks.join(' ').split(/\s+/)).toEqual(text.split(/\s+/))
  expect(Math.max(...chunks.map(chunk => chunk.length))).toBeLessThanOrEqual(300)
})

test.each<[object, string, RegExp]>([
  [{ size: 2, overlap: 2 }, 'overlap', /must be less than 'size'/],
  [{ size: 0 }, 'size', /size/],
  [{ by: 'pages' }, 'by', /by/],
  [{ by: 'characters', size: 1, max_chunks: 3 }, 'max_chunks', /makes more than 3 chunks/],
])('refuses %j', async (inputs, param, message) => {
  await expect(split('abcdef', inputs)).rejects.toThrow(
    expect.objectContaining({ param, message: expect.stringMatching(message) }) as Error,
  )
})

test('an overlap cannot make more than 12 MiB', async () => {
  const asked = { by: 'characters', size: 100_000, overlap: 99_999, max_chunks: 10_000 }
  await expect(split('x'.repeat(200_000), asked)).rejects.toThrow('All chunks together are larger than 12 MiB')
})

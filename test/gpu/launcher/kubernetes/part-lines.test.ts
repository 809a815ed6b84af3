import { expect, test } from 'vitest'
import { partLines } from '../../../../gpu/launcher/kubernetes/part-lines.ts'

function printed(rank: number, chunks: readonly string[]): string[] {
  const passed: string[] = []
  const lines = partLines(rank, bytes => void passed.push(bytes.toString()))
  for (const chunk of chunks) lines.push(Buffer.from(chunk))
  lines.end()
  return passed
}

test('lines of parts are passed on whole, and say of which part they are', () => {
  expect(printed(0, ['a\nb', 'c\n', 'd'])).toEqual(['a\n', 'bc\n', 'd\n'])
  expect(printed(2, ['a\nb\nc', 'd\n\n'])).toEqual(['rank 2: a\nrank 2: b\n', 'rank 2: cd\nrank 2: \n'])
})

test('a line without an end holds back no more than 16 KiB', () => {
  const long = 'x'.repeat(10_000)
  expect(printed(1, [long, long, `${long}\n`])).toEqual([`rank 1: ${long}${long}\n`, `rank 1: ${long}\n`])
})

import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { unreadable } from '../../../cli/terminal/exit-codes.ts'

test.each([
  ['/nowhere/a.png', 'The image a.png cannot be read: there is no such file.'],
  ['/dev/null/a.png', 'The image a.png cannot be read: there is no such file.'],
  [tmpdir(), 'The image a.png cannot be read: it is a folder.'],
])('%s is reported in one sentence, and exits with 74', (path, sentence) => {
  let cause: unknown
  try {
    readFileSync(path)
  } catch (thrown) {
    cause = thrown
  }
  expect(unreadable('The image a.png', cause)).toMatchObject({ message: sentence, exitCode: 74 })
})

test('other messages of the operating system are kept', () => {
  expect(unreadable('x.yaml', new Error('it is longer than 16 MiB.')).message).toBe(
    'x.yaml cannot be read: it is longer than 16 MiB.',
  )
})

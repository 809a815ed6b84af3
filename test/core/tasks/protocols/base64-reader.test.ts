import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Base64Reader } from '../../../../core/tasks/protocols/base64-reader.ts'
import { EngineFault } from '../../../../core/tasks/protocols/engine-messages.ts'

/** Answers with base64 strings, in pieces of every size. */
const folder = mkdtempSync(join(tmpdir(), 'infer-base64-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let readers = 0
const readerOf = (text: string, size: number) => {
  const reader = new Base64Reader(folder, `answer-${++readers}`)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) reader.feed(bytes.subarray(at, at + size))
  return reader
}

const images = [0, 1, 4, 3_071, 3_072, 3_073, 20_001].map(length => Buffer.alloc(length, `image of ${length}`))
const prose = `"quoted" \\ and é, ${'not base64 '.repeat(1_000)}`
const answer = {
  images: images.map(image => ({ b64_json: image.toString('base64') })),
  info: prose,
  status: 'completed',
}

test.each([1, 7, 4_095, 4_096, 4_097, 1 << 20])('pieces of %i bytes', async size => {
  const reader = readerOf(JSON.stringify(answer), size)
  const read = JSON.parse((await reader.end()).toString()) as typeof answer
  expect([read.info, read.status]).toEqual([prose, 'completed'])
  for (const [at, { b64_json }] of read.images.entries()) {
    if (images[at]!.length === 0) continue
    expect(readFileSync(join(folder, await reader.fileOf(b64_json)))).toEqual(images[at])
  }
})

test('an answer whose files arrive faster than they are written asks for a pause', async () => {
  const reader = new Base64Reader(folder, 'fast')
  const drained = new Promise<void>(done => (reader.drained = done))
  reader.feed(Buffer.from('{"a":"'))
  expect(reader.feed(Buffer.alloc(4 << 20, 'A'))).toBe(false)
  await drained
  expect(reader.feed(Buffer.from('"}'))).toBe(true)
  expect((await reader.end()).toString()).toBe('{"a":"infer-file:0"}')
})

test('faults', async () => {
  await expect(readerOf(`{"a":"${'A'.repeat(9_000)}`, 100).end()).rejects.toThrow('broke off its answer')
  await expect(readerOf('{}', 1).fileOf('no base64!')).rejects.toThrow(EngineFault)
  await expect(readerOf('{}', 1).fileOf(undefined)).rejects.toThrow('not base64')
  expect(() => readerOf(`{"a":[${'1,'.repeat(600_000)}`, 1 << 16)).toThrow('too long')
  expect(() => readerOf(JSON.stringify(Array.from({ length: 65 }, () => 'A'.repeat(5_000))), 1 << 16)).toThrow(
    '64 files',
  )
})

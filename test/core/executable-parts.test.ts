import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openExecutableParts, partsList } from '../../core/executable-parts.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'infer-parts-'))
  path = join(folder, 'infer')
  writeFileSync(path, 'node first second')
  appendFileSync(path, partsList({ one: [5, 5], two: [11, 6] }))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('reads each part, whole and in pieces', () => {
  const parts = openExecutableParts(path)
  const read = (name: string, size: number, at?: number) => {
    const bytes = new Uint8Array(size)
    parts.read(name, bytes, at)
    return Buffer.from(bytes).toString()
  }
  expect([parts.has('one'), parts.has('three')]).toEqual([true, false])
  expect([parts.size('one'), parts.size('two')]).toEqual([5, 6])
  expect([read('one', 5), read('two', 6), read('two', 3, 2)]).toEqual(['first', 'second', 'con'])
  expect(() => read('one', 5, 1)).toThrow('The asset one has only 5 bytes.')
  expect(() => read('three', 1)).toThrow(`${path} has no asset three.`)
})

test('refuses a file without a list of parts', () => {
  truncateSync(path, 17)
  expect(() => openExecutableParts(path)).toThrow(`${path} is not a complete executable of infer.`)
})

test('keeps reading the file that it opened when another one takes its place', () => {
  const parts = openExecutableParts(path)
  rmSync(path)
  writeFileSync(path, 'something else')
  const bytes = new Uint8Array(5)
  parts.read('one', bytes)
  expect(Buffer.from(bytes).toString()).toBe('first')
})

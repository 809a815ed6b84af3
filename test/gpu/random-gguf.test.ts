import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readGgufHeader } from '../../core/models/gguf-header.ts'

/** Model files for measuring; that the engine loads one and answers is in llama-checks.test.ts. */
const folder = mkdtempSync(join(tmpdir(), 'infer-random-gguf-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const checks = resolve('test/gpu/checks')
const python = (...args: string[]) =>
  execFileSync('python3', ['-B', ...args], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, PYTHONPATH: checks },
  }).trim()
const write = (name: string, ...args: string[]) => {
  const path = join(folder, name)
  expect(python(join(checks, 'llama', 'random_gguf.py'), path, ...args)).toBe(String(readFileSync(path).length))
  return path
}

test.each(['f16', 'q8_0'])('a tiny model of %s is small, complete and the same every time', async kind => {
  const path = write(`tiny-${kind}.gguf`, 'tiny', kind)
  const bytes = readFileSync(path)
  expect(bytes.length).toBeLessThan(1_000_000)
  expect(readFileSync(write(`again-${kind}.gguf`, 'tiny', kind)).equals(bytes)).toBe(true)
  expect(await readGgufHeader(path)).toMatchObject({
    architecture: 'llama',
    blockCount: 2,
    embeddingLength: 64,
    headCount: 4,
    headCountKv: [2, 2],
    vocabularySize: 1024,
  })
})

test.each([
  ['1b', 'f16', 2.2e9],
  ['8b', 'q8_0', 7.7e9],
])('%s of %s has the shape of a real model', (size, kind, bytes) => {
  const program = `from llama.random_gguf import *; print(sum(tensor_bytes(shape, kind) for _, shape, kind in tensors(SHAPES['${size}'], TYPES['${kind}'])))`
  expect(Number(python('-c', program)) / bytes).toBeCloseTo(1, 1)
})

test('other sizes are refused with what there is', () => {
  expect(() => python(join(checks, 'llama', 'random_gguf.py'), join(folder, 'x'), '70b')).toThrow(
    'usage: random_gguf.py FILE tiny|1b|8b [f16|q8_0]',
  )
})

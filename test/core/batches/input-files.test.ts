import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { batchWork, openInputFiles } from '../../../core/batches/batch-work.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'infer-batch-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the work of the threads here, and counts the calls. */
function openFiles() {
  const calls: string[] = []
  const calling = () => async (_pool: string, work: keyof typeof batchWork, request: never) => {
    calls.push(work)
    return (await batchWork[work](request)).value
  }
  return { files: openInputFiles({ calling } as never), calls }
}
const line = (id: string, input: string) =>
  JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/embeddings', body: { model: 'm', input } })
function options(lines: string[]) {
  const path = join(folder, 'in.jsonl')
  writeFileSync(path, lines.join('\n'))
  return { path, endpoint: '/v1/embeddings', namesModel: true, maxBytes: 1 << 20, bounds: { depth: 64, keys: 1_000 } }
}

test.each([
  ['requests', Array.from({ length: 3_000 }, (_, at) => line(`${at}`, 'x'.repeat(200)))],
  ['blanks', Array.from({ length: 200_000 }, () => ' ').concat(line('a', 'x'))],
])('the check of many %s lets other work run', async (_, lines) => {
  const { files, calls } = openFiles()
  let turns = 0
  const over = new AbortController()
  const others = (async () => {
    for (; !over.signal.aborted; turns++) await nextTurn()
  })()
  const { total, faults } = await files.check(options(lines), new AbortController().signal)
  over.abort()
  await others
  expect([total, faults, calls]).toEqual([lines.filter(text => text !== ' ').length, [], []])
  expect(turns).toBeGreaterThan(3)
})

test('a long line is parsed in a thread', async () => {
  const { files, calls } = openFiles()
  const checked = await files.check(
    options([line('a', 'x'), line('b', 'x'.repeat(70_000))]),
    new AbortController().signal,
  )
  expect(checked).toEqual({ total: 2, faults: [], models: [{ id: 'm', lines: [1, 2] }] })
  expect(calls).toEqual(['checkBatchLine'])
})

test('a stopping server ends the check', async () => {
  const { files } = openFiles()
  const stopping = AbortSignal.abort(new Error('stopping'))
  const lines = Array.from({ length: 20_000 }, (_, at) => line(`${at}`, 'x'.repeat(100)))
  await expect(files.check(options(lines), stopping)).rejects.toThrow('stopping')
})

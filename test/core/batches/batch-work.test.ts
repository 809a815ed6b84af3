import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkFile, lineSummary, readPage } from '../../../core/batches/batch-work.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'infer-batch-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const bounds = { depth: 64, keys: 1_000 }
const target = { endpoint: '/v1/embeddings', namesModel: true }
const line = (id: string, model = 'm', more = '') =>
  JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/embeddings', body: { model, input: `ü${more}` } })
/** A line whose body has this many levels. */
const nested = (levels: number) =>
  line(`${levels}`).replace('"input"', `"user":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)},"input"`)
function file(...lines: string[]): string {
  const path = join(folder, 'in.jsonl')
  writeFileSync(path, lines.join('\n'))
  return path
}
const check = (path: string, maxBytes = 1 << 20) =>
  checkFile({ path, maxBytes, bounds, ...target }, { pause: () => undefined, summary: lineSummary })

test('a valid file has its lines and models; empty lines and line breaks of Windows do not count', async () => {
  const checked = await check(file(line('a'), '', `${line('b', 'n')}\r`, '  ', line('c'), ''))
  expect(checked).toEqual({
    total: 3,
    faults: [],
    models: [
      { id: 'm', lines: [1, 5] },
      { id: 'n', lines: [3] },
    ],
  })
})

test('a line may be exactly as long as the limit', async () => {
  const text = line('a')
  const [bytes, path] = [Buffer.byteLength(text), file(text)]
  expect(await check(path, bytes)).toMatchObject({ total: 1, faults: [] })
  expect((await check(path, bytes - 1)).faults).toHaveLength(1)
})

test.each<[rule: string, lines: string[], faults: [code: string, line: number | null][]]>([
  ['an empty file', [''], [['empty_file', null]]],
  ['a file of empty lines', ['', ' '], [['empty_file', null]]],
  ['a wrong line, with its number', [line('a'), '', 'x'], [['invalid_json_line', 3]]],
  ['a second line with the same id', [line('a'), line('b'), line('a')], [['duplicate_custom_id', 3]]],
  ['a line that is too long', [line('a'), line('b', 'm', 'x'.repeat(30_000))], [['invalid_json_line', 2]]],
  ['a line of 5,000 levels', [line('a'), nested(5_000)], [['invalid_json_line', 2]]],
  ['a body of 65 levels', [nested(64), nested(65)], [['invalid_json_line', 2]]],
  ['a line of 1,500 members', [line('a', 'm').replace('{', `{${'"x":1,'.repeat(1_500)}`)], [['invalid_json_line', 1]]],
  [
    'every wrong line',
    ['x', line('a'), 'y'],
    [
      ['invalid_json_line', 1],
      ['invalid_json_line', 3],
    ],
  ],
  ['50,001 lines', Array.from({ length: 50_001 }, (_, at) => line(`${at}`)), [['too_many_lines', 50_001]]],
])('%s is a fault', async (_, lines, faults) => {
  expect((await check(file(...lines), 20_000)).faults.map(({ code, line: at }) => [code, at])).toEqual(faults)
})

test('a body has as many members as that of a request, and lists of any length', async () => {
  const members = Array.from({ length: 998 }, (_, at) => `"m${at}":1,`).join('')
  const full = line('full').replace('"body":{', `"body":{${members}`)
  const tokens = line('tokens').replace('"ü"', JSON.stringify(Array.from({ length: 20_000 }, (_, at) => at)))
  expect((await check(file(full, tokens))).faults).toEqual([])
  expect((await check(file(full.replace('"m0"', '"more":1,"m0"')))).faults).toHaveLength(1)
})

test('at most 100 faults are collected', async () => {
  expect((await check(file(...Array.from({ length: 500 }, () => 'x')))).faults).toHaveLength(100)
})

test('pages of any size give every line once, whatever the size of a line', async () => {
  const lines = Array.from({ length: 40 }, (_, at) => line(`id ${at}`, 'm', 'x'.repeat((at * 97) % 3_000)))
  const path = file(...lines.flatMap(one => [one, '']))
  for (const bytes of [64, 1_000, 1 << 16]) {
    const ids: string[] = []
    for (let [offset, number] = [0, 1]; ; ) {
      const page = (await readPage({ path, target, offset, line: number, lines: 7, bytes, maxBytes: 1 << 20 }))!
      const last = page.at(-1)
      if (!last) break
      expect(page.length).toBeLessThanOrEqual(7)
      ids.push(...page.map(({ customId }) => customId))
      ;[offset, number] = [last.end, last.line + 1]
    }
    expect(ids).toEqual(lines.map((_, at) => `id ${at}`))
  }
})

test('a page ends before a line that is too large for the event loop', async () => {
  const path = file(line('a'), line('b', 'm', 'x'.repeat(500)))
  const options = { path, target, lines: 9, bytes: 4_000, maxBytes: 1 << 20 }
  expect((await readPage({ ...options, offset: 0, line: 1 }, 300))!.map(({ customId }) => customId)).toEqual(['a'])
  const offset = line('a').length + 2
  expect(await readPage({ ...options, offset, line: 2 }, 300)).toBeUndefined()
  expect(await readPage({ ...options, offset, line: 2 })).toHaveLength(1)
})

import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../_app.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

let app: TestApp
beforeAll(async () => void (app = await startApp({ models: [] })))
afterAll(() => app[Symbol.asyncDispose]())

const run = (args: string[], input?: Uint8Array) =>
  infer(['file', ...args], { env: { INFER_URL: app.url, INFER_TOKEN: app.secret }, ...(input ? { input } : {}) })

test('upload, list, show, download, delete', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'in "1".jsonl')
  writeFileSync(path, '{"a":1}\n')
  const uploaded = json(await run(['upload', path, '--purpose', 'batch', '--expires', '2h', '--json']))
  expect(uploaded).toMatchObject({ filename: 'in _1_.jsonl', bytes: 8, purpose: 'batch' })
  const { id, created_at, expires_at } = uploaded as { id: string; created_at: number; expires_at: number }
  expect(expires_at - created_at).toBe(7200)
  expect(json(await run(['list', '--json']))).toEqual({ files: [uploaded], has_more: false })
  expect((await run(['list', '--purpose', 'batch_output'])).stdout).not.toContain(id)
  expect((await run(['show', id])).stdout).toContain('in _1_.jsonl')

  const out = join(folder, 'copy.jsonl')
  expect((await run(['download', id, out])).stdout).toBe(`${out}\n`)
  expect(readFileSync(out, 'utf8')).toBe('{"a":1}\n')
  const again = await run(['download', id, out])
  expect([again.exitCode, again.stderr]).toEqual([64, expect.stringContaining('--force')])
  expect((await run(['download', id, '-'])).stdout).toBe('{"a":1}\n')

  expect((await run(['delete', id])).stdout).toBe(`Deleted ${id}.\n`)
  const gone = await run(['show', id])
  expect([gone.exitCode, gone.stderr]).toEqual([1, expect.stringContaining(`No such File object: ${id}`)])
})

test('standard input, a large file in parts, and a path that cannot be read', async () => {
  const folder = temporaryFolder()
  const piped = await run(['upload', '-', '--name', 'notes.md'], Buffer.from('# Notes\n'))
  expect([piped.exitCode, piped.stdout]).toEqual([0, expect.stringMatching(/^file-\w+\n$/)])
  expect((await run(['download', piped.stdout.trim(), '-'])).stdout).toBe('# Notes\n')

  const large = join(folder, 'large.bin')
  writeFileSync(large, 'begin')
  truncateSync(large, (64 << 20) + 1)
  const uploaded = json(await run(['upload', large, '--json'])) as { id: string; bytes: number }
  expect(uploaded.bytes).toBe((64 << 20) + 1)

  mkdirSync(join(folder, 'sub'))
  const wrong = await run(['upload', join(folder, 'sub')])
  expect([wrong.exitCode, wrong.stderr]).toEqual([74, expect.stringContaining('it is a folder')])
})

test('a backup copies the stored files with --files', async () => {
  const folder = temporaryFolder()
  const id = (await run(['upload', '-', '--name', 'a.txt'], Buffer.from('kept'))).stdout.trim()
  const backup = (...args: string[]) => infer(['backup', ...args, '--data-dir', app.dataDir])
  const files = join(folder, 'files')
  const copied = await backup(join(folder, 'two.db'), '--files', files, '--json')
  expect(json(copied)).toMatchObject({ files: { folder: files, count: expect.any(Number) as number, missing: 0 } })
  expect(readFileSync(join(files, app.organizationId, `${id}.txt`), 'utf8')).toBe('kept')
  expect((await backup(join(folder, 'three.db'), '--files', files)).exitCode).toBe(64)
})

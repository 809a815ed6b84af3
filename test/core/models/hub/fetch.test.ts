import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fetchModel } from '../../../../core/models/hub/fetch.ts'
import { parseHubReference } from '../../../../core/models/hub/reference.ts'
import { snapshotFilesOf, snapshotOf } from '../../../../core/models/hub/snapshot.ts'
import { openHub } from '../../../fixtures/hub.ts'

const [small, big] = [randomBytes(1_000), randomBytes(200_000)]

async function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'infer-fetch-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const files = { 'm-Q4_K_M.gguf': big, 'm-Q8_0.gguf': big, 'config.json': small }
  const hub = await openHub({ 'o/m': { files } })
  onTestFinished(() => hub.close())
  const commit = hub.commitOf('o/m')
  const fetch = (text: string, more: { at?: string; names?: string[]; cache?: string } = {}) =>
    fetchModel(parseHubReference(text, hub.endpoint)!, {
      hub: { endpoint: hub.endpoint, cache: more.cache ?? join(folder, 'cache'), token: undefined, offline: false },
      signal: new AbortController().signal,
      onEvent() {},
      retryRules: { attempts: 1, backoffMs: 1, silenceMs: 400 },
      ...more,
    })
  return { hub, commit, folder, fetch, own: join(folder, 'cache/models--o--m') }
}

test('exactly the named files are downloaded, and later used without the network', async () => {
  const { hub, commit, fetch, own } = await setUp()
  const names = ['config.json', 'm-Q8_0.gguf']
  expect(await fetch(`hf:o/m@${commit}`, { names })).toEqual({ folder: own, commit, present: false })
  expect(readFileSync(join(own, 'snapshots', commit, 'm-Q8_0.gguf'))).toEqual(big)
  expect(existsSync(join(own, 'snapshots', commit, 'm-Q4_K_M.gguf'))).toBe(false)
  await hub.close()
  expect(await fetch(`hf:o/m@${commit}`, { names })).toEqual({ folder: own, commit, present: true })
  await expect(fetch(`hf:o/m@${commit}`, { names: ['m-Q4_K_M.gguf'] })).rejects.toThrow(/cannot be reached/)
})

test('the files of a shared folder are used before a download', async () => {
  const { hub, commit, folder, fetch, own } = await setUp()
  await fetch('hf:o/m')
  const at = join(folder, 'shared/models--o--m')
  cpSync(own, at, { recursive: true, verbatimSymlinks: true })
  await hub.close()
  const cache = join(folder, 'other')
  expect(await fetch('hf:o/m', { at, cache })).toEqual({ folder: at, commit, present: true })
  expect(await fetch(`hf:o/m@${commit}`, { at, cache, names: ['m-Q4_K_M.gguf'] })).toMatchObject({ folder: at })
  expect(existsSync(cache)).toBe(false)
})

test('a file that the repository does not have is refused', async () => {
  const { fetch } = await setUp()
  await expect(fetch('hf:o/m', { names: ['none.gguf'] })).rejects.toThrow("The repository o/m has no file 'none.gguf'.")
})

test('the words of a command say which files of a snapshot an engine reads', async () => {
  const { commit, fetch, own } = await setUp()
  await fetch(`hf:o/m@${commit}`, { names: ['config.json', 'm-Q8_0.gguf'] })
  const snapshot = join(own, 'snapshots', commit)
  const namesOf = async (...words: string[]) =>
    (await snapshotFilesOf(own, words))?.files.map(one => [one.name, one.bytes])
  expect(snapshotOf(join(snapshot, 'a/b.gguf'))).toEqual({ folder: own, commit, file: 'a/b.gguf' })
  expect(snapshotOf('/models/m.gguf')).toBeUndefined()
  expect(await namesOf('-m', join(snapshot, 'm-Q8_0.gguf'), '-c', '1')).toEqual([['m-Q8_0.gguf', 200_000]])
  expect(await namesOf(snapshot)).toEqual([
    ['config.json', 1_000],
    ['m-Q8_0.gguf', 200_000],
  ])
  expect(await namesOf('/elsewhere')).toBeUndefined()
  expect(await namesOf(join(snapshot, 'm-00001-of-00002.gguf'))).toBeUndefined()
  const found = await snapshotFilesOf(own, [snapshot])
  expect(found).toMatchObject({ repository: 'o/m', commit })
  for (const { hash } of found!.files) expect(existsSync(join(own, 'blobs', hash))).toBe(true)
})

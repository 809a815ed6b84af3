import { createHash, randomBytes } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tinyChat } from '../../../../bin/tiny-chat.ts'
import { layoutOf } from '../../../../core/models/hub/layout.ts'
import { type PullEvent, type PullPreview, pullModel } from '../../../../core/models/hub/pull.ts'
import { parseHubReference } from '../../../../core/models/hub/reference.ts'
import type { HubSettings } from '../../../../core/models/hub/settings.ts'
import { openHub, type Repository } from '../../../fixtures/hub.ts'

const big = randomBytes(300_000)
const other = randomBytes(200_000)
const plain: Repository = {
  files: {
    'README.md': Buffer.from('# Model'),
    'm-Q4_K_M.gguf': big,
    'm-Q8_0.gguf': other,
    'small.gguf': Buffer.from('short enough to be in git itself'),
  },
}
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function setUp(repositories: Record<string, Repository> = { 'o/m': plain }, settings: Partial<HubSettings> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-pull-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const hub = await openHub(repositories)
  onTestFinished(() => hub.close())
  const cache = join(folder, 'hub')
  const events: PullEvent[] = []
  const pull = (
    text: string,
    {
      signal = new AbortController().signal,
      more = {},
      onEvent,
      preview,
    }: {
      preview?: (preview: PullPreview) => Promise<void>
      signal?: AbortSignal
      more?: Partial<HubSettings>
      onEvent?: (event: PullEvent) => void
    } = {},
  ) =>
    pullModel(parseHubReference(text, hub.endpoint)!, {
      hub: { endpoint: hub.endpoint, cache, token: undefined, offline: false, ...settings, ...more },
      signal,
      retryRules: { attempts: 3, backoffMs: 1, silenceMs: 400 },
      ...(preview ? { preview } : {}),
      onEvent: event => {
        events.push(event)
        onEvent?.(event)
      },
    })
  const contents = () => hub.requests.filter(({ path, at }) => at === 'store' || path.includes('/resolve/'))
  return { hub, cache, events, pull, contents, layout: layoutOf(cache, 'o/m') }
}
const named = (events: PullEvent[], name: PullEvent['event']) => events.filter(({ event }) => event === name)

test('a file is stored in the shared cache as the tools of the hub store it', async () => {
  const { hub, cache, pull, layout, events } = await setUp()
  const pulled = await pull('hf:o/m')
  const commit = hub.commitOf('o/m')
  expect(pulled).toMatchObject({
    kind: 'gguf',
    path: join(cache, 'models--o--m/snapshots', commit, 'm-Q4_K_M.gguf'),
    others: ['m-Q8_0.gguf', 'small.gguf'],
  })
  expect(readFileSync(pulled.path)).toEqual(big)
  expect(lstatSync(pulled.path).isSymbolicLink()).toBe(true)
  expect(readlinkSync(pulled.path)).toBe(`../../blobs/${sha256(big)}`)
  expect(readFileSync(layout.ref('main'), 'utf8')).toBe(commit)
  expect(readdirSync(layout.blobs)).toEqual([sha256(big)])
  expect(events[0]).toMatchObject({ event: 'connect', what: 'o/m' })
  expect(events[1]).toMatchObject({
    event: 'plan',
    commit,
    bytes: 300_000,
    files: [{ file: 'm-Q4_K_M.gguf', present: false }],
  })
  expect(events.at(-1)).toMatchObject({ event: 'file', present: false })
})

test('an existing file is not downloaded again', async () => {
  const { pull, contents } = await setUp()
  await pull('hf:o/m')
  const before = contents().length
  const events: PullEvent[] = []
  await pull('hf:o/m', { onEvent: event => void events.push(event) })
  expect(contents().length).toBe(before)
  expect(events.map(({ event }) => event)).toEqual(['connect', 'plan', 'file'])
  expect(events.at(-1)).toMatchObject({ present: true })
})

test('a small file is verified by its git hash', async () => {
  const { hub, pull, layout } = await setUp()
  expect(readFileSync((await pull('hf:o/m:small.gguf')).path, 'utf8')).toContain('short enough')
  expect(readdirSync(layout.blobs)[0]).toHaveLength(40)
  rmSync(layout.root, { recursive: true })
  hub.play('small.gguf', { wrong: true })
  await expect(pull('hf:o/m:small.gguf')).rejects.toThrow(/is damaged/)
})

test('a broken connection is resumed as long as bytes arrive', async () => {
  const { hub, pull, contents, events } = await setUp()
  hub.play('m-Q4_K_M.gguf', ...Array.from({ length: 6 }, () => ({ cutAfter: 40_000 })))
  expect(readFileSync((await pull('hf:o/m')).path)).toEqual(big)
  expect(named(events, 'retry')).toHaveLength(6)
  const ranges = contents()
    .filter(({ at }) => at === 'store')
    .map(({ range }) => Number(/^bytes=(\d+)-$/.exec(range ?? 'bytes=0-')![1]))
  expect(ranges).toEqual(ranges.toSorted((a, b) => a - b))
  expect(new Set(ranges).size).toBe(7)
})

test('a stalled connection is closed and resumed', async () => {
  const { hub, pull, events } = await setUp()
  hub.play('m-Q4_K_M.gguf', { stallAfter: 100_000 })
  expect(readFileSync((await pull('hf:o/m')).path)).toEqual(big)
  expect(named(events, 'retry')).toMatchObject([{ reason: expect.stringContaining('has sent nothing for') }])
})

test('attempts without a new byte are limited, and the partial file is kept for the next time', async () => {
  const { hub, pull, contents, layout, events } = await setUp()
  hub.play('m-Q4_K_M.gguf', { cutAfter: 100_000 }, { status: 503 }, { status: 500 }, { status: 502 })
  await expect(pull('hf:o/m')).rejects.toThrow(/has an error: it answered 500/)
  const kept = readFileSync(layout.incomplete(sha256(big)))
  expect(kept.length).toBeGreaterThan(0)
  expect(big.subarray(0, kept.length)).toEqual(kept)
  hub.play('m-Q4_K_M.gguf')
  const before = contents().length
  await pull('hf:o/m')
  expect(contents()[before + 1]).toMatchObject({ at: 'store', range: `bytes=${kept.length}-` })
  expect(named(events, 'resume')).toMatchObject([{ bytes: kept.length }])
  expect(existsSync(layout.incomplete(sha256(big)))).toBe(false)
})

test('a Retry-After of the server is respected', async () => {
  const { hub, pull, events } = await setUp()
  hub.play('m-Q4_K_M.gguf', { status: 429, headers: { 'retry-after': '0' } })
  await pull('hf:o/m')
  expect(named(events, 'retry')).toMatchObject([{ waitMs: 0, reason: expect.stringContaining('too many requests') }])
})

test('wrong bytes are deleted and reported', async () => {
  const { hub, pull, layout } = await setUp()
  hub.play('m-Q4_K_M.gguf', { wrong: true })
  await expect(pull('hf:o/m')).rejects.toThrow(/is damaged: its sha256 is .* should be .*It was deleted/)
  expect(readdirSync(layout.blobs)).toEqual([])
  expect(existsSync(join(layout.root, 'snapshots'))).toBe(false)
  await pull('hf:o/m')
})

test('a partial file with wrong bytes is detected, deleted, and downloaded again', async () => {
  const { pull, layout } = await setUp()
  mkdirSync(layout.blobs, { recursive: true })
  writeFileSync(layout.incomplete(sha256(big)), Buffer.alloc(1000))
  await expect(pull('hf:o/m')).rejects.toThrow(/is damaged/)
  expect(readFileSync((await pull('hf:o/m')).path)).toEqual(big)
})

test('a server that ignores the range, or sends too much, is handled', async () => {
  const { hub, pull, layout } = await setUp()
  hub.play('m-Q4_K_M.gguf', { cutAfter: 50_000 }, { whole: true })
  expect(readFileSync((await pull('hf:o/m')).path)).toEqual(big)
  rmSync(layout.root, { recursive: true })
  hub.play('m-Q4_K_M.gguf', { cutAfter: 50_000 }, { status: 416 })
  expect(readFileSync((await pull('hf:o/m')).path)).toEqual(big)
  rmSync(layout.root, { recursive: true })
  hub.play('m-Q4_K_M.gguf', { more: 10 })
  await expect(pull('hf:o/m')).rejects.toThrow(/sends more than the 300000 bytes of m-Q4_K_M\.gguf/)
})

test('a stopped download is kept and resumed', async () => {
  const { hub, pull, layout, events } = await setUp()
  hub.play('m-Q4_K_M.gguf', { stallAfter: 120_000 })
  const stop = new AbortController()
  const reason = new Error('stopped by hand')
  await expect(
    pull('hf:o/m', { signal: stop.signal, onEvent: ({ event }) => void (event === 'progress' && stop.abort(reason)) }),
  ).rejects.toBe(reason)
  expect(readFileSync(layout.incomplete(sha256(big))).length).toBeGreaterThan(0)
  expect(readFileSync((await pull('hf:o/m')).path)).toEqual(big)
  expect(named(events, 'resume')).toHaveLength(1)
})

test('the token is sent to the hub only', async () => {
  const { hub, pull } = await setUp({ 'o/m': { ...plain, privateTo: 'mine' } }, { token: 'mine' })
  await pull('hf:o/m')
  expect(
    hub.requests.filter(({ at }) => at === 'hub').every(({ authorization }) => authorization === 'Bearer mine'),
  ).toBe(true)
  expect(hub.requests.filter(({ at }) => at === 'store').map(({ authorization }) => authorization)).toEqual([undefined])
})

test('gated, private and missing repositories have different errors, with what to do', async () => {
  const { hub, pull } = await setUp({
    'o/m': { ...plain, gatedFor: 'granted' },
    'o/p': { ...plain, privateTo: 'mine' },
  })
  const page = `${hub.endpoint}/o/m`
  await expect(pull('hf:o/m')).rejects.toThrow(
    `o/m is gated: accept its licence at ${page}, then pass a token with HF_TOKEN or --token-file.`,
  )
  await expect(pull('hf:o/m', { more: { token: 'someone' } })).rejects.toThrow(
    `has no access yet. Accept its licence at ${page}`,
  )
  await expect(pull('hf:o/p')).rejects.toThrow(/no repository o\/p .* or it is private\. Pass a token/)
  await expect(pull('hf:o/none', { more: { token: 'x' } })).rejects.toThrow(
    /no repository o\/none .* or it is private\.$/,
  )
  await expect(pull('hf:o/m@v9')).rejects.toThrow(/no such revision/)
  await pull('hf:o/m', { more: { token: 'granted' } })
})

test('a model in parts and a safetensors model are downloaded whole', async () => {
  const { hub, pull, cache } = await setUp({
    'o/m': { files: { 'm-00001-of-00002.gguf': big, 'm-00002-of-00002.gguf': other } },
    'o/st': {
      files: {
        'model.safetensors': big,
        'config.json': Buffer.from('{}'),
        'x/tokenizer.json': other,
        'pytorch_model.bin': other,
      },
    },
  })
  const parts = await pull('hf:o/m')
  expect(parts.files.map(({ path }) => readFileSync(path).length)).toEqual([300_000, 200_000])
  expect(parts.path).toBe(parts.files[0]!.path)
  const folder = await pull('hf:o/st')
  expect(folder).toMatchObject({ kind: 'snapshot', path: join(cache, 'models--o--st/snapshots', hub.commitOf('o/st')) })
  const names = new Set(readdirSync(folder.path, { recursive: true, encoding: 'utf8' }))
  expect(names).toEqual(new Set(['config.json', 'model.safetensors', 'x', 'x/tokenizer.json']))
  expect(readFileSync(join(folder.path, 'x/tokenizer.json'))).toEqual(other)
})

test('concurrent pulls of the same file download it once', async () => {
  const { hub, pull, contents, events } = await setUp()
  hub.play('m-Q4_K_M.gguf', { stallAfter: 10_000 })
  const all = await Promise.all([pull('hf:o/m'), pull('hf:o/m'), pull('hf:o/m')])
  for (const { path } of all) expect(readFileSync(path)).toEqual(big)
  expect(named(events, 'wait').length).toBeGreaterThanOrEqual(1)
  // The stalled request, and the rest of the file.
  expect(contents().filter(({ at }) => at === 'store')).toHaveLength(2)
})

test('a model can be inspected, and refused, before it is downloaded', async () => {
  const tiny = tinyChat()
  const { hub, pull, contents, cache } = await setUp({ 'o/m': { files: { 'm.gguf': tiny } } })
  const no = new Error('too large')
  let seen: PullPreview | undefined
  const preview = async (found: PullPreview) => {
    seen = found
    throw no
  }
  hub.play('m.gguf', { cutAfter: 1000 }, { status: 503 })
  await expect(pull('hf:o/m', { preview })).rejects.toBe(no)
  expect(seen).toMatchObject({
    bytes: tiny.length,
    repository: 'o/m',
    path: layoutOf(cache, 'o/m').file(hub.commitOf('o/m'), 'm.gguf'),
    header: { architecture: 'llama', contextLength: 4096 },
  })
  expect(contents().every(({ range }) => /^bytes=0-\d+$/.test(range ?? ''))).toBe(true)
  expect(existsSync(cache)).toBe(false)
  // A server without range requests: the model cannot be inspected, and the download continues without.
  hub.play('m.gguf', { whole: true })
  expect(readFileSync((await pull('hf:o/m', { preview })).path)).toEqual(tiny)
})

test('a pull that waits for another download can be stopped', async () => {
  const { hub, pull } = await setUp()
  hub.play('m-Q4_K_M.gguf', { stallAfter: 10_000 })
  const [first, second] = [new AbortController(), new AbortController()]
  const downloading = pull('hf:o/m', {
    signal: first.signal,
    onEvent: ({ event }) => void (event === 'progress' && begun()),
  })
  let begun = () => {}
  await new Promise<void>(resolve => (begun = resolve))
  const reason = new Error('enough')
  await expect(
    pull('hf:o/m', { signal: second.signal, onEvent: ({ event }) => void (event === 'wait' && second.abort(reason)) }),
  ).rejects.toBe(reason)
  first.abort(reason)
  await expect(downloading).rejects.toBe(reason)
})

test('names that lead out of the cache are refused before anything is written', async () => {
  const { pull, cache } = await setUp({ 'o/m': { files: { 'm.gguf': big, '../../../evil.gguf': other } } })
  await expect(pull('hf:o/m')).rejects.toThrow(/"\.\.\/\.\.\/\.\.\/evil\.gguf".*Nothing was downloaded/)
  expect(existsSync(cache)).toBe(false)
})

test('a file larger than the free disk space is not started', async () => {
  const { hub, pull, layout } = await setUp({ 'o/m': { ...plain, claims: { 'm-Q4_K_M.gguf': 2 ** 52 } } })
  await expect(pull('hf:o/m')).rejects.toThrow(/needs 4,503,599,628 MB in .* are free/)
  expect(hub.requests.some(({ path }) => path.includes('/resolve/'))).toBe(false)
  expect(readdirSync(layout.blobs)).toEqual([])
})

test('a missing hub and a missing network have different messages', async () => {
  const { hub, pull } = await setUp()
  await expect(pull('hf:o/m', { more: { offline: true } })).rejects.toThrow(/HF_HUB_OFFLINE is set/)
  await hub.close()
  await expect(pull('hf:o/m')).rejects.toThrow(/^127\.0\.0\.1:\d+ cannot be reached: .*HF_ENDPOINT/)
})

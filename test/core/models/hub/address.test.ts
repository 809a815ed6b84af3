import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { pullAddress } from '../../../../core/models/hub/address.ts'
import type { PullEvent } from '../../../../core/models/hub/pull.ts'
import { openHub } from '../../../fixtures/hub.ts'

const ggufOf = (bytes: number): Buffer => Buffer.concat([Buffer.from('GGUF'), randomBytes(bytes - 4)])
const [big, other] = [ggufOf(300_000), ggufOf(200_000)]
const page = Buffer.from('<html>Sign in first</html>'.repeat(10))

async function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'infer-address-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const web = await openHub({
    'o/m': {
      files: { 'page.gguf': page, 'big.gguf': big, 'p-00001-of-00002.gguf': big, 'p-00002-of-00002.gguf': other },
    },
  })
  onTestFinished(() => web.close())
  const events: PullEvent[] = []
  const pull = (file: string, signal = new AbortController().signal, onEvent?: (event: PullEvent) => void) =>
    pullAddress(`${web.endpoint}/o/m/resolve/main/${file}`, folder, {
      hub: { endpoint: 'http://hub.invalid', cache: folder, token: 'secret', offline: false },
      signal,
      retryRules: { attempts: 3, backoffMs: 1, silenceMs: 2_000 },
      onEvent: event => {
        events.push(event)
        onEvent?.(event)
      },
    })
  return { folder, web, pull, events }
}

test('a file is downloaded from any address, without the token of the hub, and once', async () => {
  const { folder, web, pull, events } = await setUp()
  web.play('big.gguf', { cutAfter: 1 }, { cutAfter: 100_000 })
  const { path } = await pull('big.gguf?download=true')
  expect(path).toBe(join(folder, 'big.gguf'))
  expect(readFileSync(path)).toEqual(big)
  expect(web.requests.every(({ authorization }) => authorization === undefined)).toBe(true)
  expect(readdirSync(folder).filter(name => name.includes('incomplete'))).toEqual([])
  await pull('big.gguf')
  expect(events.at(-1)).toMatchObject({ event: 'file', present: true })
})

test('a stopped download is resumed', async () => {
  const { folder, web, pull, events } = await setUp()
  web.play('big.gguf', { cutAfter: 1 }, { stallAfter: 100_000 })
  const stop = new AbortController()
  await expect(
    pull('big.gguf', stop.signal, ({ event }) => void (event === 'progress' && stop.abort(new Error('stopped')))),
  ).rejects.toThrow('stopped')
  expect(readFileSync((await pull('big.gguf')).path)).toEqual(big)
  expect(events.filter(({ event }) => event === 'resume')).toHaveLength(1)
  expect(readdirSync(folder).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(['big.gguf', 'big.gguf.lock'])
})

test('a partial download longer than the file starts again', async () => {
  const { folder, web, pull } = await setUp()
  web.play('big.gguf', { cutAfter: 1 }, { stallAfter: 100_000 })
  const stop = new AbortController()
  await expect(
    pull('big.gguf', stop.signal, ({ event }) => void (event === 'progress' && stop.abort(new Error('stopped')))),
  ).rejects.toThrow('stopped')
  const begun = readdirSync(folder).find(name => name.endsWith('.incomplete'))!
  writeFileSync(join(folder, begun), Buffer.alloc(big.length + 1))
  expect(readFileSync((await pull('big.gguf')).path)).toEqual(big)
})

test('an address with a password is refused at once, and the password is not printed', async () => {
  const { folder, events } = await setUp()
  const hub = { endpoint: 'http://hub.invalid', cache: folder, token: undefined, offline: false }
  const { signal } = new AbortController()
  const refused = pullAddress('http://me:hunter2@127.0.0.1:9/m.gguf', folder, {
    hub,
    signal,
    retryRules: { attempts: 1, backoffMs: 1, silenceMs: 2_000 },
    onEvent: event => events.push(event),
  })
  await expect(refused).rejects.toMatchObject({
    code: 'invalid_value',
    message: expect.not.stringContaining('hunter2') as string,
  })
})

test('all parts of a model are downloaded', async () => {
  const { pull } = await setUp()
  const { path, files } = await pull('p-00002-of-00002.gguf')
  expect(path).toMatch(/p-00001-of-00002\.gguf$/)
  expect(files.map(one => readFileSync(one.path).length)).toEqual([300_000, 200_000])
})

test('what is no model is deleted and named, and does not stand in the way of the next download', async () => {
  const { folder, pull } = await setUp()
  await expect(pull('page.gguf')).rejects.toThrow(/What 127\.0\.0\.1:\d+ sent as page\.gguf is no GGUF file/)
  expect(readdirSync(folder)).toEqual(['page.gguf.lock'])
  writeFileSync(join(folder, 'big.gguf'), page)
  const decline = ({ event }: PullEvent) => {
    if (event === 'plan') throw new Error('declined')
  }
  await expect(pull('big.gguf', undefined, decline)).rejects.toThrow('declined')
  expect(readFileSync(join(folder, 'big.gguf'))).toEqual(page)
  expect(readFileSync((await pull('big.gguf')).path)).toEqual(big)
})

test('another file of the same name is not changed', async () => {
  const { folder, pull } = await setUp()
  writeFileSync(join(folder, 'big.gguf'), 'GGUF of mine')
  await expect(pull('big.gguf')).rejects.toThrow(/The file '.*big\.gguf' exists with another size/)
  expect(readFileSync(join(folder, 'big.gguf'), 'utf8')).toBe('GGUF of mine')
})

test('addresses without a GGUF file are refused', async () => {
  const { folder, pull } = await setUp()
  for (const file of ['', 'README.md', '..%2fevil.gguf'])
    await expect(pull(file)).rejects.toThrow(/does not end in the name of a \.gguf file/)
  await expect(pull('none.gguf')).rejects.toThrow(/There is no .*none\.gguf on 127\.0\.0\.1/)
  expect(readdirSync(folder)).toEqual([])
})

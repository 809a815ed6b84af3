import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { openWorkspaces } from '../../../../core/files/workspaces.ts'
import { ulid } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { type Form, type FormOptions, readForm } from '../../../../server/http/body/multipart.ts'
import type { ClientExchange } from '../../../../server/http/request/exchange.ts'
import type { Owners } from '../../../../server/http/request/owners.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-form-'))
const options: FormOptions = { files: { image: 16, mask: 1 }, maxBytes: 64 << 10 }
let read: (form: Form) => unknown = () => ({})
let answer: (outcome: unknown) => void = () => {}
let workspaces: Awaited<ReturnType<typeof openWorkspaces>>
const uploadSize = 1 << 20

/** A server that parses forms and reports the result of each. */
const server = createServer((req, res) => void serve(req, res))

async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const exchange = {
    id: `req_${ulid()}`,
    req,
  } as unknown as ClientExchange
  const owners = {
    config: { limits: { upload_size: uploadSize } },
    files: { workspace: workspaces.make, admit: () => {} },
  } as unknown as Owners
  try {
    await using form = await readForm(exchange, options, owners)
    const value = await read(form)
    answer({ value, bodyHash: exchange.bodyHash })
    res.end(JSON.stringify({ value, bodyHash: exchange.bodyHash }))
  } catch (thrown) {
    const { code, message, param, status } = Failure.from(thrown)
    answer({ code })
    res.writeHead(status).end(JSON.stringify({ code, message, param }))
  }
}
let url = ''
beforeAll(async () => {
  workspaces = await openWorkspaces(
    join(folder, 'work'),
    openLog('error', () => {}),
  )
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})
afterAll(async () => {
  await new Promise(resolve => server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

interface Answer {
  value?: unknown
  bodyHash?: string
  code?: string
  message?: string
  param?: string
}
const send = async (body: FormData | string, headers: Record<string, string> = {}): Promise<Answer> => {
  const response = await fetch(url, { method: 'POST', body, headers })
  return (await response.json()) as Answer
}
const form = (...parts: [name: string, value: string | Blob, file?: string][]): FormData => {
  const made = new FormData()
  for (const [name, value, file] of parts)
    if (typeof value === 'string') made.append(name, value)
    else made.append(name, value, file ?? 'a.png')
  return made
}
const left = () => readdirSync(join(folder, 'work'))
const bytes = (size: number, fill = 7) => new Blob([Buffer.alloc(size, fill)], { type: 'image/png' })

test('fields and files arrive, lists under one name in either form, files in their order', async () => {
  read = ({ fields, files }) => ({
    fields: Object.fromEntries(fields),
    files: [...files].map(([name, list]) => [
      name,
      list.map(file => [file.name, file.contentType, file.bytes, readFileSync(file.path)[0]]),
    ]),
  })
  const { value } = await send(
    form(
      ['prompt', 'a cat — “ß”'],
      ['image[]', bytes(50_000, 1), 'first.png'],
      ['tag', 'x'],
      ['tag[]', 'y'],
      ['tag[2]', 'z'],
      ['expires_after[anchor]', 'created_at'],
      ['image[]', bytes(10, 2), 'second.png'],
      ['__proto__', 'inert'],
      ['mask', bytes(3, 3)],
      ['other', bytes(10)],
    ),
  )
  expect(value).toEqual({
    fields: {
      prompt: ['a cat — “ß”'],
      tag: ['x', 'y', 'z'],
      'expires_after[anchor]': ['created_at'],
      ['__proto__']: ['inert'],
    },
    files: [
      [
        'image',
        [
          ['first.png', 'image/png', 50_000, 1],
          ['second.png', 'image/png', 10, 2],
        ],
      ],
      ['mask', [['a.png', 'image/png', 3, 3]]],
    ],
  })
  await expect.poll(left).toEqual([])
})

test('an empty file input is absent, and an empty file is a file', async () => {
  read = ({ files }) => [...files.keys()]
  const boundary = 'x'
  const part = (name: string, file: string) =>
    `--x\r\nContent-Disposition: form-data; name="${name}"; filename="${file}"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n`
  const body = `${part('image', '')}${part('mask', 'empty.png')}--x--\r\n`
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
  expect((await send(body, headers)).value).toEqual(['mask'])
})

test('equal forms have equal fingerprints, and others have others', async () => {
  read = () => ({})
  const key = { 'idempotency-key': 'k' }
  const [one, same, text, file] = await Promise.all([
    send(form(['prompt', 'a'], ['image', bytes(9)]), key),
    send(form(['image', bytes(9), 'b.png'], ['prompt', 'a']), key),
    send(form(['prompt', 'b'], ['image', bytes(9)]), key),
    send(form(['prompt', 'a'], ['image', bytes(9, 8)]), key),
  ])
  expect(one.bodyHash).toMatch(/^[0-9a-f]{64}$/)
  expect(same.bodyHash).toBe(one.bodyHash)
  expect(new Set([one.bodyHash, text.bodyHash, file.bodyHash]).size).toBe(3)
  expect((await send(form(['prompt', 'a']))).bodyHash).toBeUndefined()
})

const many = form()
for (let at = 0; at < 257; at++) many.append(`f${at}`, 'x')
const texts = form()
for (let at = 0; at < 5; at++) texts.append(`f${at}`, 'x'.repeat(1_000_000))
const images = form()
for (let at = 0; at < 17; at++) images.append('image', bytes(4), 'a.png')
const raw = 'multipart/form-data; boundary=x'
test.each<[name: string, body: FormData | string, expected: object, type?: string]>([
  ['a file that is too large', form(['image', bytes(65_537)]), { code: 'payload_too_large', param: 'image' }],
  ['a field that is too large', form(['prompt', 'x'.repeat(1_048_577)]), { code: 'payload_too_large' }],
  ['fields that are too large together', texts, { code: 'payload_too_large' }],
  ['a form that is too large', form(['other', bytes(2 << 20)]), { code: 'payload_too_large' }],
  ['too many files of a name', images, { code: 'array_above_max_length', param: 'image' }],
  [
    'two where one is taken',
    form(['mask', bytes(1)], ['mask', bytes(1)]),
    { code: 'array_above_max_length', param: 'mask' },
  ],
  ['too many fields', many, { code: 'invalid_value' }],
  ['JSON', '{}', { code: 'unsupported_media_type' }, 'application/json'],
  ['no boundary', '--x--', { code: 'invalid_value' }, 'multipart/form-data'],
  ['no form at all', 'hello', { code: 'invalid_value' }, raw],
  [
    'a form without its end',
    '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb',
    { code: 'invalid_value' },
    raw,
  ],
  [
    'a file without its end',
    '--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\nbytes',
    { code: 'invalid_value' },
    raw,
  ],
  ['a nameless field', '--x\r\nContent-Disposition: form-data\r\n\r\nb\r\n--x--\r\n', { code: 'invalid_value' }, raw],
])('%s is refused, and no file of it is left', async (_name, body, expected, type) => {
  read = () => ({})
  expect(await send(body, type === undefined ? {} : { 'content-type': type })).toMatchObject(expected)
  await expect.poll(left).toEqual([])
})

test('a sender that disconnects in the middle leaves no file', async () => {
  const outcome = new Promise(resolve => (answer = resolve))
  const sender = request(url, { method: 'POST', headers: { 'content-type': raw, 'content-length': '100000' } })
  sender.on('error', () => {})
  sender.write('--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\nbytes')
  await expect.poll(left).not.toEqual([])
  sender.destroy()
  expect(await outcome).toEqual({ code: 'cancelled' })
  await expect.poll(left).toEqual([])
})

test('a slow sender is not treated as disconnected', async () => {
  read = ({ fields }) => fields.get('prompt')
  const sender = request(url, { method: 'POST', headers: { 'content-type': raw } })
  const response = new Promise<IncomingMessage>(resolve => sender.on('response', resolve))
  for (const piece of [
    '--x\r\nContent-Disp',
    'osition: form-data; name="prompt"\r\n',
    '\r\nab',
    'c\r\n-',
    '-x--\r\n',
  ]) {
    sender.write(piece)
    await new Promise(resolve => setImmediate(resolve))
  }
  sender.end()
  let text = ''
  for await (const chunk of await response) text += String(chunk)
  expect(JSON.parse(text)).toMatchObject({ value: ['abc'] })
})

test('any damaged form is parsed or refused without waiting', async () => {
  read = () => ({})
  const part = (name: string, file: string, body: string) =>
    `--x\r\nContent-Disposition: form-data; name="${name}"${file}\r\nContent-Type: image/png\r\n\r\n${body}\r\n`
  const whole = `${part('prompt', '', 'a cat')}${part('image', '; filename="a.png"', 'x'.repeat(200))}--x--\r\n`
  let seed = 1
  const next = (below: number) => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 1) % below
  const pieces = [
    '--x',
    '--x--',
    '\r\n',
    '\r\n\r\n',
    '"',
    ';',
    'filename=',
    '\0',
    '\r',
    'multipart/mixed; boundary=y',
    ':',
  ]
  const damaged = (): string => {
    let text = whole
    for (let times = 1 + next(3); times > 0; times--) {
      const [at, length] = [next(text.length), next(40)]
      const kind = next(3)
      if (kind === 0) text = text.slice(0, at) + text.slice(at + length)
      else if (kind === 1) text = text.slice(0, at) + pieces[next(pieces.length)]! + text.slice(at)
      else text = text.slice(0, at)
    }
    return text
  }
  const codes = new Set<string | undefined>()
  for (let round = 0; round < 40; round++)
    for (const { code } of await Promise.all(
      Array.from({ length: 10 }, () => send(damaged(), { 'content-type': raw })),
    ))
      codes.add(code)
  expect([...codes].filter(code => code !== undefined && code !== 'invalid_value')).toEqual([])
  expect(codes).toContain('invalid_value')
  await expect.poll(left).toEqual([])
})

test.each([5_000, 9])(
  'a client that disconnects before its form of %i bytes is parsed leaves no file',
  async length => {
    const { make } = workspaces
    const called = Promise.withResolvers<IncomingMessage>()
    const gone = Promise.withResolvers<void>()
    const outcome = new Promise(resolve => (answer = resolve))
    // The folder exists only after the client has disconnected.
    workspaces = {
      ...workspaces,
      async make(id) {
        await gone.promise
        return make(id)
      },
    }
    server.once('request', (req: IncomingMessage) => called.resolve(req))
    try {
      const client = request(url, {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=x', 'content-length': length },
      })
      client.on('error', () => {})
      client.write('--x--\r\n\r\n')
      const req = await called.promise
      req.once('close', () => gone.resolve())
      client.destroy()
      expect(await outcome).toEqual({ code: 'cancelled' })
      expect(readdirSync(join(folder, 'work'))).toEqual([])
    } finally {
      workspaces = { ...workspaces, make }
      answer = () => {}
    }
  },
)

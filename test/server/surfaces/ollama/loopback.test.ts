import { writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type App, openApp } from '../../../../cli/server/app.ts'
import { openLog } from '../../../../core/log.ts'
import { Config, parseConfig } from '../../../../core/models/config.ts'
import { isOwnProgram } from '../../../../server/surfaces/ollama/ollama-route.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

/** Attacks on `ollama.loopback_token`, which lets programs on this machine in without a token. */
let first: TestApp
let app: App
let tokenId: string
beforeAll(async () => {
  first = await startApp()
  const created = await first.fetch(`/api/organizations/${first.organizationId}/tokens`, {
    body: { name: 'local', scopes: ['user:read', 'user:write'] },
  })
  const { token } = (await created.json()) as { token: { id: string } }
  tokenId = token.id
  await first.app.close()
  writeFileSync(
    first.configPath,
    stringify({
      models: [fakeModel('fake')],
      allowed_hosts: ['gpu.lan'],
      ollama: { loopback_token: tokenId },
      limits: { min_free_disk: 0, ballast: 0 },
    }),
  )
  app = await openApp({
    dataDir: first.dataDir,
    configPath: first.configPath,
    listen: '127.0.0.1:0',
    drainTimeoutMs: 2_000,
    log: openLog('error', () => {}),
  })
})
afterAll(async () => {
  await app.close()
  await first[Symbol.asyncDispose]()
})

interface Sent {
  method?: string
  headers?: Record<string, string>
  body?: string
}

/** Sends exactly these headers, which `fetch` would not. */
function send(path: string, { method, headers = {}, body }: Sent = {}): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(app.url)
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const sent = request({ hostname, port, path, method: method ?? (body ? 'POST' : 'GET'), headers, agent: false })
  sent.on('error', reject).on('response', (answer: IncomingMessage) => {
    let text = ''
    answer.setEncoding('utf8').on('data', piece => (text += piece))
    answer.on('end', () => resolve({ status: answer.statusCode!, text }))
  })
  sent.end(body)
  return promise
}
const json = { 'content-type': 'application/json' }
const chat = { body: JSON.stringify({ model: 'fake', messages: [{ role: 'user', content: 'Hi' }] }) }

test('a program on this machine needs no token, and is the token that is named', async () => {
  expect(await send('/ollama/api/tags')).toMatchObject({ status: 200, text: expect.stringContaining('fake') })
  expect(await send('/ollama/api/chat', { ...chat, headers: json })).toMatchObject({
    status: 200,
    text: expect.stringContaining('"done":true'),
  })
})

const curl = { 'content-type': 'application/x-www-form-urlencoded' }

test('a body that curl names a form is read as JSON, unless a web page sent it', async () => {
  expect(await send('/ollama/api/chat', { ...chat, headers: curl })).toMatchObject({ status: 200 })
  const origin = 'http://evil.example'
  expect((await send('/ollama/api/chat', { ...chat, headers: { ...curl, origin } })).status).toBe(401)
  const token = { authorization: `Bearer ${first.secret}` }
  expect((await send('/ollama/api/chat', { ...chat, headers: { ...curl, ...token, origin } })).status).toBe(415)
  expect((await send('/std/v1/chat/completions', { ...chat, headers: { ...curl, ...token } })).status).toBe(415)
})

describe('everything else needs one', () => {
  const name = (headers: Record<string, string>) => ({ headers })
  test.each<[string, Sent]>([
    ['a page of another site', name({ origin: 'https://evil.example' })],
    ['a page of another server on this machine', name({ origin: 'http://127.0.0.1:3000' })],
    ['a page in a frame without an origin', name({ origin: 'null' })],
    ['a page of this server', name({ origin: 'http://127.0.0.1', 'sec-fetch-site': 'same-origin' })],
    ['an image in a page', name({ 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' })],
    ['a page of a sibling site', name({ 'sec-fetch-site': 'same-site' })],
    ['a link that a page follows', name({ 'sec-fetch-site': 'none' })],
    ['an older browser', name({ referer: 'https://evil.example/' })],
    ['a name that a page has rebound, though it is allowed', name({ host: 'gpu.lan' })],
    ['a proxy: X-Forwarded-For', name({ 'x-forwarded-for': '203.0.113.9' })],
    ['a proxy that claims this machine', name({ 'x-forwarded-for': '127.0.0.1' })],
    ['a proxy: Forwarded', name({ forwarded: 'for=203.0.113.9' })],
    ['a proxy: X-Real-IP', name({ 'x-real-ip': '127.0.0.1' })],
    ['a proxy: Via', name({ via: '1.1 proxy' })],
    ['a wrong token', name({ authorization: 'Bearer sk-infer-wrong' })],
    ['an empty token', name({ authorization: 'Bearer ' })],
    ['the id in place of the secret', name({ authorization: 'Bearer tok_1' })],
    ['another scheme', name({ authorization: 'Basic b2xsYW1hOm9sbGFtYQ==' })],
  ])('%s', async (_, sent) => {
    const { status, text } = await send('/ollama/api/tags', sent)
    expect(status).toBe(401)
    expect(JSON.parse(text)).toMatchObject({ error: expect.any(String) })
    expect(text).not.toContain(tokenId)
    expect((await send('/ollama/api/chat', { ...chat, headers: { ...json, ...sent.headers } })).status).toBe(401)
  })

  test.each([
    '/std/v1/models',
    '/api/me',
    '/api/model-status',
    '/v1/models',
    '/ollama/../api/me',
    '/ollama/%2e%2e/api/me',
  ])('%s', async path => expect((await send(path)).status).toBe(401))

  test('a name that is not allowed is refused before', async () => {
    expect((await send('/ollama/api/tags', { headers: { host: 'evil.example' } })).status).toBe(421)
  })

  test('a text, which a page may send without asking', async () => {
    const headers = { 'content-type': 'text/plain' }
    expect((await send('/ollama/api/chat', { ...chat, headers })).status).toBe(415)
  })
})

test('the rights are those of the token', async () => {
  for (const [path, body] of [
    ['/ollama/api/pull', { model: 'starter' }],
    ['/ollama/api/generate', { model: 'fake', keep_alive: 0 }],
  ] as const)
    expect(await send(path, { body: JSON.stringify(body), headers: json })).toMatchObject({
      status: 403,
      text: expect.stringContaining('admin:write'),
    })
})

test('only addresses of this machine count as it, whatever the headers say', () => {
  const from = (remoteAddress: string, headers: object = { host: '127.0.0.1:8787' }) =>
    isOwnProgram({ socket: { remoteAddress }, headers } as unknown as IncomingMessage)
  expect(['127.0.0.1', '::1', '::ffff:127.0.0.1'].map(address => from(address))).toEqual([true, true, true])
  expect(['10.0.0.5', '192.168.1.2', '::ffff:10.0.0.5', 'fe80::1', ''].map(address => from(address))).toEqual(
    Array(5).fill(false),
  )
  for (const host of ['localhost:8787', '[::1]:8787', '127.0.0.2']) expect(from('127.0.0.1', { host })).toBe(true)
  for (const host of ['0.0.0.0:8787', '192.168.1.2', 'localhost.evil.example', '127.0.0.1.nip.io', undefined])
    expect(from('127.0.0.1', { host })).toBe(false)
})

test('the setting is the id of a token and never its secret', () => {
  const read = (loopback_token: string) => Config.safeParse({ ollama: { loopback_token } })
  expect(read(tokenId).success).toBe(true)
  expect(read(first.secret).error?.issues[0]?.message).toContain('must be the id of a token')
  expect(Config.parse({}).ollama).toEqual({})
})

describe('proxies on this machine', () => {
  const read = (proxies: string, ollama = `ollama: { loopback_token: ${tokenId} }`) =>
    parseConfig(`trusted_proxies: [${proxies}]\n${ollama}\n`, 'infer.yaml')

  test.each(['127.0.0.1', '10.0.0.0/8, 127.0.0.0/8', '127.0.0.9', '0.0.0.0/0', '"::1"', '"::/0"'])(
    'refuse the setting: %s',
    proxies => {
      expect(() => read(proxies)).toThrow(
        /^infer\.yaml:2:\d+: 'ollama\.loopback_token' lets .* Remove the setting, or .* 'trusted_proxies'\.$/,
      )
      expect(() => read(proxies, '')).not.toThrow()
    },
  )
  test.each(['', '10.0.0.0/8', '126.255.255.255', '"fd00::/8"'])('others do not: %s', proxies => {
    expect(read(proxies).ollama).toEqual({ loopback_token: tokenId })
  })
})

test('a token that was revoked lets nobody in', async () => {
  const revoked = await fetch(`${app.url}/api/organizations/${first.organizationId}/tokens/${tokenId}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${first.secret}` },
  })
  expect(revoked.ok).toBe(true)
  expect(await send('/ollama/api/tags')).toMatchObject({ status: 401, text: expect.stringContaining('revoked') })
})

test('those that only look for a server find one, and nothing else', async () => {
  for (const path of ['/ollama', '/ollama/'])
    expect(await send(path)).toEqual({ status: 200, text: 'Ollama is running' })
  expect(await send('/ollama', { method: 'HEAD' })).toEqual({ status: 200, text: '' })
})

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type App, openApp } from '../../cli/server/app.ts'
import { newId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { backupDatabase } from '../../core/store/sqlite/admin.ts'
import { openReceiver, type Receiver } from '../_receiver.ts'
import { openScriptedEngine, type ScriptedEngine, well } from './_scripted-engine.ts'

/** T-SEC-7: a secret is shown to the one who creates it, once, and is in nothing that others read or keep. */

const dataDir = mkdtempSync(join(tmpdir(), 'infer-secrets-'))
const logged: string[] = []
let app: App
let engine: ScriptedEngine
let receiver: Receiver
let root: string
let organization: string

beforeAll(async () => {
  engine = await openScriptedEngine(well)
  receiver = await openReceiver((received, response) => {
    if (received.path === '/ok') return false
    response.writeHead(410).end('gone')
    return true
  })
  const configPath = join(dataDir, 'infer.yaml')
  const webhooks = { allowed_addresses: ['127.0.0.1'], retry_delays: [5] }
  const limits = { min_free_disk: 0, ballast: 0 }
  writeFileSync(configPath, stringify({ models: [engine.model('far')], webhooks, limits }))
  const log = openLog('debug', line => void logged.push(line))
  app = await openApp({ dataDir, configPath, listen: '127.0.0.1:0', drainTimeoutMs: 2_000, log })
  root = app.firstStart!.secret
  organization = app.firstStart!.organizationId
})
afterAll(async () => {
  await app.close()
  await engine[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  rmSync(dataDir, { recursive: true, force: true })
})

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(app.url + path, {
    method,
    headers: {
      authorization: `Bearer ${root}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, text }
}
async function made(path: string, body: unknown, headers: Record<string, string> = {}) {
  const { status, text } = await ask('POST', path, body, headers)
  expect(status, text).toBeLessThan(300)
  return JSON.parse(text) as Record<string, never> & {
    secret: string
    signing_secret: string
    token: { id: string }
    webhook: { id: string }
    id: string
  }
}

/** The forms in which the bytes of a secret could be written. */
const formsOf = (bytes: Buffer): string[] => [
  bytes.toString('latin1'),
  bytes.toString('hex'),
  bytes.toString('base64').replace(/=+$/, ''),
  bytes.toString('base64url'),
]

test('T-SEC-7: no secret of tokens, webhooks or the master key is in logs, the audit log, answers or backups', async () => {
  const secrets = [root]
  const signing: string[] = []
  const tokens = `/api/organizations/${organization}/tokens`
  const keyed = { 'idempotency-key': newId('req') }

  // Everything that makes a secret.
  const { token, secret } = await made(tokens, { name: 'a' }, keyed)
  secrets.push(secret)
  secrets.push((await made(`${tokens}/${token.id}/rotate`, { overlap_seconds: 60 })).secret)
  const endpoint = { event_types: ['*'], url: `${receiver.url}/ok`, name: 'e' }
  const { webhook, signing_secret } = await made('/api/webhooks', endpoint, { 'idempotency-key': newId('req') })
  signing.push(signing_secret)
  signing.push((await made(`/api/webhooks/${webhook.id}/rotate`, { overlap_seconds: 60 })).signing_secret)
  signing.push((await made('/std/v1/webhook_endpoints', { ...endpoint, url: `${receiver.url}/bad` })).signing_secret)
  const own = `/api/organizations/${organization}/webhook-secret`
  signing.push((JSON.parse((await ask('GET', own)).text) as { signing_secret: string }).signing_secret)
  signing.push((await made(`${own}/rotate`, { overlap_seconds: 60 })).signing_secret)
  expect(new Set([...secrets, ...signing]).size).toBe(8)

  // Secrets at places where they do not belong, and requests that fail.
  for (const misplaced of [...secrets, ...signing]) {
    const encoded = encodeURIComponent(misplaced)
    await ask('GET', `/api/jobs/${encoded}?api_key=${encoded}`)
    await ask('GET', `/${encoded}`)
    await ask('POST', '/std/v1/embeddings', `{"model":"${misplaced}"`)
    await ask('POST', '/std/v1/embeddings', { model: misplaced, input: 'a' })
    await ask('GET', '/api/me', undefined, { 'user-agent': misplaced, 'x-request-id': misplaced })
    await ask('GET', '/api/me', undefined, { authorization: `Bearer ${misplaced}x` })
  }
  await ask('POST', tokens, { name: 'a' }, keyed)

  // Work whose events are signed and sent, also where they are refused, with a token that is then revoked.
  const job = await made(
    '/api/jobs',
    { task: 'std/embeddings', model_id: 'far', inputs: { input: 'a' }, webhook_url: `${receiver.url}/ok` },
    { authorization: `Bearer ${secret}` },
  )
  await receiver.next(({ path, body }) => path === '/ok' && body.type === 'job.completed' && body.data['id'] === job.id)
  await receiver.next(({ path }) => path === '/bad')
  await expect.poll(async () => (await ask('GET', '/api/webhook-deliveries?status=dead')).text).toContain('"dead"')
  await ask('POST', `${tokens}/${token.id}/revoke`)

  const pages: Record<string, string> = {}
  for (const path of [
    '/api/system/logs?lines=1000',
    `/api/organizations/${organization}/audit`,
    tokens,
    `/api/organizations/${organization}`,
    '/api/webhooks',
    `/api/webhooks/${webhook.id}`,
    '/std/v1/webhook_endpoints',
    '/api/webhook-deliveries',
    `/api/jobs/${job.id}`,
    '/api/me',
    '/api/system/status',
    '/.well-known/jwks.json',
    '/metrics',
  ]) {
    const { status, text } = await ask('GET', path)
    expect([path, status]).toEqual([path, 200])
    pages[path] = text
  }
  expect(logged.some(line => line.includes('A webhook was not delivered'))).toBe(true)
  pages.log = logged.join('')
  const backup = join(dataDir, 'copy.db')
  await backupDatabase(dataDir, backup)
  pages.backup = readFileSync(backup, 'latin1')
  // What each receiver got is for its owner; but not the secret that signed it.
  pages.sent = JSON.stringify(receiver.all)
  for (const name of readdirSync(dataDir))
    if (/\.db|\.json$/.test(name)) pages[name] = readFileSync(join(dataDir, name), 'latin1')

  const masterKey = Buffer.from(readFileSync(join(dataDir, 'master-key'), 'latin1'), 'base64')
  const forbidden = [
    ...secrets.flatMap(one => [one.slice(22), encodeURIComponent(one)]),
    ...signing.flatMap(one => formsOf(Buffer.from(one.slice('whsec_'.length), 'base64'))),
    ...formsOf(masterKey),
  ]
  for (const [where, text] of Object.entries(pages))
    for (const form of forbidden) expect(text.includes(form), `a secret in ${where}`).toBe(false)
})

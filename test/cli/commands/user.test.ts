import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../_app.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

let app: TestApp
beforeAll(async () => void (app = await startApp()))
afterAll(() => app[Symbol.asyncDispose]())

/** Where commands work: on a data directory without a server, or on a server over HTTP. */
const places: [string, () => Record<string, string>][] = [
  ['locally', () => ({ INFER_DATA_DIR: temporaryFolder() })],
  ['on another server', () => ({ INFER_URL: app.url, INFER_TOKEN: app.secret })],
]

describe.each(places)('%s', (where, place) => {
  test('an organization gets users, who own tokens; the audit log says who did it', async () => {
    const env = place()
    const run = async (...args: string[]) => {
      const ended = await infer(args, { env })
      expect(ended.exitCode, `${args.join(' ')}: ${ended.stderr}`).toBe(0)
      return ended
    }
    await run('org', 'create', 'acme', '--plan', 'pro')
    if (where !== 'locally')
      expect((await infer(['token', 'list'], { env })).stderr).toContain('Choose one with --org: default, acme.')
    const org = ['--org', 'acme']
    const added = await run('user', 'add', 'Ada@Example.com', ...org, '--role', 'admin', '--json')
    expect(json(added)).toMatchObject({ user: { name: 'Ada', email: 'ada@example.com', role: 'admin' } })
    const limits = ['--spend-limit', '2.5', '--tokens-per-minute', '1000', '--requests-per-minute', '60']
    const created = await run('token', 'create', ...org, '--user', 'ada@example.com', ...limits, '--json')
    const { token, secret } = json(created) as { token: { id: string; user_id: string }; secret: string }
    expect((await run('token', 'show', token.id, ...org)).stdout).toMatch(/^tokens per minute +1000$/m)
    if (where !== 'locally') {
      const member = { env: { ...env, INFER_TOKEN: secret } }
      expect((await infer(['token', 'show'], member)).stdout).toMatch(/^ {2}spending a month +token +2.50 of 2.50 USD/m)
      expect((await infer(['usage'], member)).stderr).toContain('What is left of your own limits: infer token show')
    }
    expect(token).toMatchObject({
      user_id: expect.stringMatching(/^user_/) as string,
      rate_limit: { api: 60, jobs: null },
      tokens_per_minute: 1000,
      monthly_spend_limit: 2.5,
    })
    const beyond = await infer(
      ['token', 'create', ...org, '--user', 'ada@example.com', '--scopes', 'admin:read', '--json'],
      { env },
    )
    expect(beyond.exitCode).toBe(0)
    const hours = 'Mon-Fri 08:00-18:00 Europe/Berlin'
    const update = async (...args: string[]) =>
      (json(await run('token', 'update', token.id, ...org, ...args, '--json')) as { token: object }).token
    const more = ['--jobs-per-minute', '7', '--spend-limit', 'none', '--allowed-hours', hours, '--models', 'qwen/*']
    expect(await update('--name', 'mine', ...more, '--metadata', 'team=a', '--metadata', 'floor=2')).toMatchObject({
      name: 'mine',
      models: ['qwen/*'],
      rate_limit: { api: 60, jobs: 7 },
      tokens_per_minute: 1000,
      monthly_spend_limit: null,
      allowed_hours: { timezone: 'Europe/Berlin', ranges: [{ from: '08:00', to: '18:00' }] },
      metadata: { team: 'a', floor: '2' },
    })
    const clear = ['--requests-per-minute', '--allowed-hours', '--metadata', '--models', '--user']
    expect(
      await update('--status', 'disabled', '--scopes', 'user:read', ...clear.flatMap(name => [name, 'none'])),
    ).toMatchObject({
      status: 'disabled',
      scopes: ['user:read'],
      models: null,
      user_id: null,
      rate_limit: { api: null, jobs: 7 },
      allowed_hours: null,
      metadata: null,
    })
    await update('--status', 'active', '--user', 'ada@example.com', '--scopes', 'user:read,user:write')
    const changed = await run('user', 'update', 'ada@example.com', ...org, '--role', 'viewer', '--json')
    expect(json(changed)).toMatchObject({ tokens_narrowed: 1, tokens_revoked: 1 })
    const list = await run('user', 'list', ...org)
    expect(list.stdout).toMatch(/^user_\w+ +ada@example.com +Ada +viewer +1 +/m)
    const removed = await run('user', 'remove', 'ada@example.com', ...org, '--yes')
    expect(removed.stdout).toBe('Removed Ada. 1 tokens were revoked.\n')
    const audit = json(await run('audit', ...org, '--limit', '3', '--json')) as {
      entries: { action: string; actor: { type: string } }[]
    }
    expect(audit.entries.map(({ action }) => action)).toEqual(['token.revoked', 'user.removed', 'token.revoked'])
    expect(audit.entries[0]!.actor.type).toBe(where === 'locally' ? 'command_line' : 'token')
    const table = await run('audit', ...org, '--action', 'user.created')
    expect(table.stdout).toMatch(/user\.created +user_\w+ +- → .*ada@example.com/)
    await run('org', 'delete', 'acme', '--yes')
  })

  test.each([
    [['user', 'add', 'ada'], 'e-mail'],
    [['user', 'show'], "unknown command 'show'"],
    [['user', 'update', 'x@example.com'], 'Nothing to change'],
  ])('infer %j is refused', async (args, text) => {
    const env = place()
    await infer(['org', 'create', 'acme'], { env })
    const ended = await infer([...args, '--org', 'acme'], { env })
    expect([ended.exitCode === 0, ended.stdout]).toEqual([false, ''])
    expect(ended.stderr.toLowerCase()).toContain(text.toLowerCase())
  })
})

test('a running server is told to stop the work of a deleted organization', async () => {
  const env = { INFER_DATA_DIR: app.dataDir }
  await infer(['org', 'create', 'gone'], { env })
  const created = json(await infer(['token', 'create', '--org', 'gone', '--json'], { env })) as { secret: string }
  const body = { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' }, not_before: 4_000_000_000 }
  expect((await app.fetch('/api/jobs', { token: created.secret, body })).status).toBe(202)
  const refused = await infer(['org', 'delete', 'gone', '--yes'], { env })
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('unfinished work')])
  const ended = await infer(['org', 'delete', 'gone', '--force', '--yes', '--json'], { env })
  expect(json(ended)).toMatchObject({ jobs_cancelled: 1, tokens_revoked: 1, requests_cancelled: 0 })
})

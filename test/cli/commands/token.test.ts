import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mintSecret, parseSecret } from '../../../core/accounts/secret.ts'
import type { TokenView } from '../../../core/accounts/token-fields.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

interface Made {
  token: TokenView
  secret: string
}

/** A data directory with one organization, and a way to run commands on it. */
async function installation(env: Record<string, string> = {}) {
  const dataDir = temporaryFolder()
  const run = (...args: string[]) => infer([...args, '--data-dir', dataDir], { env })
  await run('org', 'create', 'acme')
  const create = async (...args: string[]) => json(await run('token', 'create', '--json', ...args)) as Made
  const list = async (...args: string[]) =>
    (json(await run('token', 'list', '--json', ...args)) as { tokens: TokenView[] }).tokens
  return { dataDir, run, create, list }
}

const day = 86_400

test('a token is created with the requested scopes, expiry and models', async () => {
  const { create, list } = await installation()
  const { token, secret } = await create(
    '--name',
    'ci',
    '--scopes',
    'user:read,admin:read',
    '--expires',
    '2d',
    '--models',
    'qwen/*',
  )
  expect(parseSecret(secret)).toBeDefined()
  expect(token).toMatchObject({
    id: expect.stringMatching(/^tok_/) as string,
    name: 'ci',
    scopes: ['user:read', 'admin:read'],
    models: ['qwen/*'],
    status: 'active',
    hint: `…${secret.slice(-4)}`,
    last_used_at: null,
    created_by: null,
  })
  expect(token.expires_at! - token.created_at).toBeGreaterThanOrEqual(2 * day - 1)
  // The creation is rounded down to a second, and the expiry up.
  expect(token.expires_at! - token.created_at).toBeLessThanOrEqual(2 * day + 1)
  expect(await list()).toEqual([token])
})

test('without flags a token may use the API and does not expire; an admin scope expires after 90 days', async () => {
  const { create } = await installation()
  const { token } = await create()
  expect(token).toMatchObject({ scopes: ['user:read', 'user:write'], expires_at: null, models: null })
  const { token: admin } = await create('--scopes', 'admin:write')
  expect(admin.expires_at! - admin.created_at).toBe(90 * day)
  expect((await create('--scopes', 'admin:write', '--expires', 'never')).token.expires_at).toBeNull()
})

test('in a pipe standard output has only the secret', async () => {
  const { run } = await installation()
  const { exitCode, stdout, stderr } = await run('token', 'create', '--name', 'ci')
  expect(exitCode).toBe(0)
  expect(parseSecret(stdout.trimEnd())).toBeDefined()
  expect(stderr).not.toContain(stdout.trim())
})

test('a list never contains a secret', async () => {
  const { run, create } = await installation()
  const { secret } = await create()
  for (const args of [['--json'], []]) {
    const { stdout } = await run('token', 'list', ...args)
    expect(stdout).toContain(secret.slice(-4))
    expect(stdout).not.toContain(secret.slice(9, 40))
  }
})

test('with several organizations the token goes to the named one, by name or id', async () => {
  const { run, create, list } = await installation()
  const other = json(await run('org', 'create', 'other', '--json')) as { organization: { id: string } }
  const unnamed = await run('token', 'create')
  expect(unnamed.exitCode).toBe(64)
  expect(unnamed.stderr).toContain('--org: ')
  const { token } = await create('--org', 'other')
  expect(await list('--org', other.organization.id)).toEqual([token])
  expect(await list('--org', 'acme')).toEqual([])
  expect((await run('token', 'create', '--org', 'nobody')).exitCode).toBe(1)
})

test('a token can be revoked by its id alone, and stays listed as revoked', async () => {
  const { run, create, list } = await installation()
  await run('org', 'create', 'other')
  const { token } = await create('--org', 'other')
  const ended = await run('token', 'revoke', token.id)
  expect([ended.exitCode, ended.stdout]).toEqual([0, `Revoked ${token.id}.\n`])
  expect(await list('--org', 'other', '--status', 'revoked')).toMatchObject([{ id: token.id, status: 'revoked' }])
  expect(await list('--org', 'other', '--status', 'active')).toEqual([])
})

test('the last token that manages tokens is revoked only with --force', async () => {
  const { run, create } = await installation()
  const { token } = await create('--scopes', 'admin:write')
  const refused = await run('token', 'revoke', token.id)
  expect(refused.exitCode).toBe(1)
  expect((await run('token', 'revoke', token.id, '--force')).exitCode).toBe(0)
})

test('a rotated token has a new secret and the same rights', async () => {
  const { run, create, list } = await installation()
  const { token, secret } = await create('--name', 'ci', '--scopes', 'user:read')
  const rotated = json(await run('token', 'rotate', token.id, '--overlap', '1h', '--json')) as Made & {
    previous_valid_until: number
  }
  expect(rotated.secret).not.toBe(secret)
  expect(rotated.token).toMatchObject({ name: 'ci', scopes: ['user:read'], status: 'active' })
  expect(rotated.previous_valid_until).toBeGreaterThan(Date.now() / 1000 + 3500)
  expect(await list('--status', 'active')).toHaveLength(2)
})

test('a rotation says whether the old secret still works', async () => {
  const { run, create } = await installation()
  const { token } = await create('--name', 'ci')
  expect((await run('token', 'rotate', token.id, '--overlap', '1h')).stderr).toMatch(/The old secret works until 2/)
  const { token: second } = await create('--name', 'ci2')
  const { stderr } = await run('token', 'rotate', second.id)
  expect(stderr).toContain('The old secret is no longer accepted.')
  expect(stderr).not.toContain('works until')
})

test('a new token has allowed hours and metadata', async () => {
  const { create } = await installation()
  const { token } = await create('--allowed-hours', 'Sat 10:00-14:00 UTC', '--metadata', 'team=a=b')
  expect(token).toMatchObject({
    allowed_hours: { timezone: 'UTC', ranges: [{ days: ['sat'], from: '10:00', to: '14:00' }] },
    metadata: { team: 'a=b' },
  })
})

test.each([
  [[], 64, 'Nothing to change'],
  [['--name', ''], 64, 'has 1 to 128 characters'],
  [['--allowed-hours', 'always'], 64, 'Mon-Fri 08:00-18:00 Europe/Berlin'],
  [['--metadata', 'team'], 64, 'name=value'],
  [['--user', 'nobody@example.com'], 1, "There is no user 'nobody@example.com'"],
  [['--scopes', 'user:read'], 1, 'is the last one'],
])('a token is not updated with %j', async (args, exitCode, message) => {
  const { run, create } = await installation()
  const { token } = await create('--scopes', 'user:read,admin:write')
  const ended = await run('token', 'update', token.id, ...args)
  expect(ended.stderr).toContain(message)
  expect(ended.exitCode).toBe(exitCode)
})

test.each(['revoke', 'rotate'])('an unknown token cannot be %sd: exit code 1', async verb => {
  const { run } = await installation()
  const ended = await run('token', verb, 'tok_nobody')
  expect(ended.exitCode).toBe(1)
  expect(ended.stderr).toContain("There is no token 'tok_nobody' here.")
})

test('without an organization the message says how to create one', async () => {
  const ended = await infer(['token', 'create', '--data-dir', temporaryFolder()])
  expect(ended.exitCode).toBe(1)
  expect(ended.stderr).toContain('infer serve')
})

test('a master key other than that of the server is refused before an unusable token is created', async () => {
  const key = (fill: number) => Buffer.alloc(32, fill).toString('base64')
  const { dataDir, run, create } = await installation({ INFER_MASTER_KEY: key(1) })
  const { secret } = await create()
  const absent = await infer(['token', 'create', '--data-dir', dataDir])
  expect(absent.exitCode).toBe(1)
  expect(absent.stderr).toContain('Set the same INFER_MASTER_KEY_FILE or INFER_MASTER_KEY here')

  writeFileSync(join(dataDir, 'root-token'), `${secret}\n`)
  expect((await run('token', 'list')).exitCode).toBe(0)
  const wrong = await infer(['token', 'create', '--data-dir', dataDir], { env: { INFER_MASTER_KEY: key(2) } })
  expect(wrong.exitCode).toBe(1)
  expect(wrong.stderr).toContain('differs from the key of the server')
})

test('a scan distinguishes active secrets from revoked and foreign ones, and prints none of them', async () => {
  const { dataDir, run, create } = await installation()
  const live = await create()
  const dead = await create()
  await run('token', 'revoke', dead.token.id)
  const foreign = mintSecret().secret
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'inner'))
  writeFileSync(join(folder, 'env'), `# settings\nKEY=${live.secret}\n`)
  writeFileSync(join(folder, 'inner/notes'), `${dead.secret}\n\n${foreign}`)
  writeFileSync(join(folder, 'inner/clean'), `sk-infer-${'a'.repeat(12)}-${'b'.repeat(49)}`)

  const ended = await run('token', 'scan', folder, '--json')
  expect(ended.exitCode).toBe(1)
  const { hits, ...rest } = json(ended) as { hits: { path: string; worth: string }[] }
  expect(rest).toEqual({ found: 3, live: 1, files: 3, unreadable: 0, checked: true })
  expect(hits.sort((a, b) => a.worth.localeCompare(b.worth))).toEqual([
    { path: join(folder, 'env'), line: 2, hint: live.token.hint, worth: 'live', token_id: live.token.id },
    { path: join(folder, 'inner/notes'), line: 1, hint: dead.token.hint, worth: 'revoked', token_id: dead.token.id },
    { path: join(folder, 'inner/notes'), line: 3, hint: `…${foreign.slice(-4)}`, worth: 'unknown', token_id: null },
  ])

  const text = await run('token', 'scan', folder)
  expect(text.stdout).toContain(`${join(folder, 'env')}:2: ${live.token.hint} live: revoke it with`)
  for (const { secret } of [live, dead]) expect(text.stdout + text.stderr).not.toContain(secret.slice(9, 40))

  rmSync(join(folder, 'env'))
  expect((await run('token', 'scan', folder)).exitCode).toBe(0)
  const piped = await infer(['token', 'scan', '-', '--data-dir', dataDir], { input: `a\nb ${live.secret}` })
  expect([piped.exitCode, piped.stdout]).toEqual([
    1,
    `(standard input):2: ${live.token.hint} live: revoke it with "infer token revoke ${live.token.id}"\n`,
  ])
})

test('on a machine without a server a scan finds well-formed secrets and creates nothing', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'env'), mintSecret().secret)
  const dataDir = join(folder, 'data')
  const ended = await infer(['token', 'scan', join(folder, 'env'), '--json', '--data-dir', dataDir])
  expect([ended.exitCode, json(ended)]).toMatchObject([0, { found: 1, live: 0, checked: false }])
  expect(existsSync(dataDir)).toBe(false)
})

test('an unreadable file makes a scan exit with 74', async () => {
  const folder = temporaryFolder()
  const ended = await infer(['token', 'scan', join(folder, 'missing'), '--data-dir', join(folder, 'data')])
  expect(ended.exitCode).toBe(74)
  expect(ended.stderr).toContain('missing could not be read')
})

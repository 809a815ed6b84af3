import { expect, test } from 'vitest'
import { runInProcess } from '../_in-process.ts'
import { infer, json } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'

const token = (id: string) => ({
  id,
  name: 'ci',
  scopes: ['user:read'],
  status: 'active',
  hint: '…abcd',
  models: null,
  created_at: 1_767_225_600,
  expires_at: null,
  last_used_at: null,
  created_by: null,
  user_id: null,
  rate_limit: { api: null, jobs: null },
  tokens_per_minute: null,
  concurrent_requests: null,
  monthly_spend_limit: null,
  local_only: false,
  allowed_hours: null,
  metadata: null,
})
const own = { organizations: [{ id: 'org_1', name: 'acme', status: 'active' }], has_more: false, next_cursor: null }
const env = (url: string) => ({ env: { INFER_URL: url, INFER_TOKEN: 'sk-admin' } })

test('a token is created in the organization of the token that is used', async () => {
  const { url, seen } = await fakeServer(({ path }, response) =>
    path.startsWith('/api/organizations?')
      ? answer(response, 200, own)
      : answer(response, 201, { token: token('tok_1'), secret: 'sk-infer-x' }),
  )
  const ended = await infer(
    [
      'token',
      'create',
      '--name',
      'ci',
      '--scopes',
      'user:read',
      '--expires',
      'never',
      '--models',
      'qwen/*,llama',
      '--json',
    ],
    env(url),
  )
  expect(ended.exitCode).toBe(0)
  expect(json(ended)).toEqual({ token: token('tok_1'), secret: 'sk-infer-x' })
  expect(seen[1]).toMatchObject({
    method: 'POST',
    path: '/api/organizations/org_1/tokens',
    authorization: 'Bearer sk-admin',
    body: { name: 'ci', scopes: ['user:read'], expires_at: null, models: ['qwen/*', 'llama'] },
  })
})

test('a token that may not list the organizations acts for its own', async () => {
  const { url, seen } = await fakeServer(({ method, path }, response) => {
    if (method === 'POST') return answer(response, 201, { token: token('tok_1'), secret: 'sk-infer-x' })
    if (path === '/api/me') return answer(response, 200, { organization: { id: 'org_2', name: 'default' } })
    answer(response, 403, { error: { code: 'insufficient_scope', message: 'This token lacks the scope admin:read.' } })
  })
  const { INFER_URL, INFER_TOKEN } = env(url).env
  expect((await runInProcess(['token', 'create'], { INFER_URL, INFER_TOKEN })).exitCode).toBe(0)
  expect(seen.at(-1)!.path).toBe('/api/organizations/org_2/tokens')
})

test('a pipe gets only the secret', async () => {
  const { url } = await fakeServer((_, response) =>
    answer(response, 201, { token: token('tok_1'), secret: 'sk-infer-x' }),
  )
  const ended = await infer(['token', 'create', '--org', 'org_9'], env(url))
  expect(ended.stdout).toBe('sk-infer-x\n')
  expect(ended.stderr).toContain('cannot be shown again')
})

test('all pages of a list are read', async () => {
  const { url, seen } = await fakeServer(({ path }, response) => {
    const after = new URL(path, 'http://x').searchParams.get('after')
    answer(
      response,
      200,
      after === null
        ? { tokens: [token('tok_2')], has_more: true, next_cursor: 'tok_2' }
        : { tokens: [token('tok_1')], has_more: false, next_cursor: null },
    )
  })
  const ended = await infer(['token', 'list', '--org', 'org_/1', '--status', 'active', '--json'], env(url))
  expect(json(ended)).toMatchObject({ tokens: [{ id: 'tok_2' }, { id: 'tok_1' }] })
  expect(seen.map(({ path }) => path)).toEqual([
    '/api/organizations/org_%2F1/tokens?limit=100&status=active',
    '/api/organizations/org_%2F1/tokens?limit=100&status=active&after=tok_2',
  ])
})

test('a token is revoked, with force when --force is given', async () => {
  const { url, seen } = await fakeServer((_, response) =>
    answer(response, 200, { id: 'tok_1', object: 'token', deleted: true }),
  )
  const ended = await infer(['token', 'revoke', 'tok_1', '--org', 'org_1', '--force', '--json'], env(url))
  expect(json(ended)).toEqual({ id: 'tok_1', object: 'token', deleted: true })
  expect(seen[0]).toMatchObject({ method: 'DELETE', path: '/api/organizations/org_1/tokens/tok_1?force=true' })
})

test('a token is rotated with the overlap in seconds', async () => {
  const rotated = { token: token('tok_2'), secret: 'sk-infer-y', previous_valid_until: 1_767_225_600 }
  const { url, seen } = await fakeServer((_, response) => answer(response, 200, rotated))
  const ended = await infer(['token', 'rotate', 'tok_1', '--org', 'org_1', '--overlap', '1h', '--json'], env(url))
  expect(json(ended)).toEqual(rotated)
  expect(seen[0]).toMatchObject({
    path: '/api/organizations/org_1/tokens/tok_1/rotate',
    body: { overlap_seconds: 3600 },
  })
})

test('an error of the server exits with 1 and its message', async () => {
  const { url } = await fakeServer((_, response) =>
    answer(response, 403, { error: { code: 'insufficient_scope', message: 'This token lacks the scope admin:read.' } }),
  )
  const ended = await infer(['token', 'list', '--org', 'org_1'], env(url))
  expect(ended).toEqual({ exitCode: 1, stdout: '', stderr: 'Error: This token lacks the scope admin:read.\n' })
})

test('an expiry is rounded up to a second', async () => {
  const { url, seen } = await fakeServer((_, response) =>
    answer(response, 201, { token: token('tok_1'), secret: 'sk-infer-x' }),
  )
  await infer(['token', 'create', '--org', 'org_1', '--expires', '2100-01-01T00:00:00.250Z'], env(url))
  expect(seen[0]!.body).toMatchObject({ expires_at: Date.UTC(2100) / 1000 + 1 })
})

test('users are not listed to find a user by id', async () => {
  const { url, seen } = await fakeServer((_, response) => answer(response, 200, { token: token('tok_1') }))
  await infer(['token', 'update', 'tok_1', '--org', 'org_1', '--user', 'user_1'], env(url))
  expect(seen.map(({ method, body }) => [method, body])).toEqual([['PATCH', { user_id: 'user_1' }]])
})

test('webhooks are listed without asking whose token it is', async () => {
  const { url, seen } = await fakeServer((_, response) =>
    answer(response, 200, { webhooks: [], has_more: false, next_cursor: null }),
  )
  await infer(['webhook', 'list'], env(url))
  expect(seen.map(({ path }) => path)).toEqual(['/api/webhooks?limit=100'])
})

test.each([['revoke'], ['rotate'], ['update', '--name', 'x']])('an unknown token is named: %s', async (...words) => {
  const { url } = await fakeServer((_, response) =>
    answer(response, 404, { error: { code: 'not_found', message: 'Token tok_1 was not found.' } }),
  )
  const [verb, ...options] = words.flat()
  const ended = await infer(['token', verb!, 'tok_1', '--org', 'org_1', ...options], env(url))
  expect([ended.exitCode, ended.stderr]).toEqual([1, "Error: There is no token 'tok_1' here. See: infer token list\n"])
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tensor, writeGguf } from '../../../../bin/gguf-writer.ts'
import { tinyChat } from '../../../../bin/tiny-chat.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { runInProcess } from '../../../cli/_in-process.ts'
import { openHub } from '../../../fixtures/hub.ts'

let app: TestApp
let hub: Awaited<ReturnType<typeof openHub>>
const kept = { endpoint: process.env.HF_ENDPOINT, home: process.env.HF_HOME }
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
  hub = await openHub({
    'Owner/Tiny-GGUF': { files: { 'tiny-Q4_K_M.gguf': tinyChat() } },
    'Owner/Huge-GGUF': { files: { 'huge-Q4_K_M.gguf': huge } },
  })
  process.env.HF_ENDPOINT = hub.endpoint
  process.env.HF_HOME = join(app.dataDir, 'hub')
})
afterAll(async () => {
  if (kept.endpoint === undefined) delete process.env.HF_ENDPOINT
  else process.env.HF_ENDPOINT = kept.endpoint
  if (kept.home === undefined) delete process.env.HF_HOME
  else process.env.HF_HOME = kept.home
  await app[Symbol.asyncDispose]()
  await hub.close()
})

/** The header of a model whose cache for the longest context takes terabytes. */
const huge = writeGguf(
  {
    'general.architecture': ['string', 'llama'],
    'llama.block_count': ['u32', 100],
    'llama.context_length': ['u32', 2 ** 24],
    'llama.embedding_length': ['u32', 8192],
    'llama.attention.head_count': ['u32', 64],
    'tokenizer.chat_template': ['string', '{{ messages }}'],
  },
  [tensor('a', [4], 0)],
)
const model = 'hf:Owner/Tiny-GGUF:Q4_K_M'

async function ask(path: string, options: Parameters<TestApp['fetch']>[1] = {}) {
  const answer = await app.fetch(path, options)
  // oxlint-disable-next-line no-explicit-any
  return { status: answer.status, body: (await answer.json()) as any }
}
const config = () => readFileSync(app.configPath, 'utf8')

test('the catalogue says what fits this machine', async () => {
  const { status, body } = await ask('/api/model-catalog')
  expect(status).toBe(200)
  const starter = body.models.find(({ name }: { name: string }) => name === 'smollm2-135m')
  expect(starter).toMatchObject({ kind: 'chat', license: 'Apache-2.0', engine: 'gguf', configured: false })
  expect(starter.fit.text.length).toBeGreaterThan(3)
})

test('a dry run says the lines, a download writes them, and removing takes them away', async () => {
  const before = config()
  const proposed = await ask('/api/models', { body: { model, id: 'mine', dry_run: true } })
  expect(proposed.status).toBe(200)
  expect(proposed.body).toMatchObject({ model: { id: 'mine' }, obstacle: null, lines: { removed: [] } })
  expect(proposed.body.lines.added.join('\n')).toMatch(/id: mine/)
  expect(config()).toBe(before)

  const begun = await ask('/api/models', { body: { model, id: 'mine' } })
  expect([begun.status, begun.body.status]).toEqual([202, 'running'])
  const again = await ask('/api/models', { body: { model, id: 'mine' } })
  expect([again.status, again.body.error.code]).toEqual([409, 'conflict'])
  await expect
    .poll(async () => (await ask('/api/model-downloads')).body.downloads[0])
    .toMatchObject({ id: begun.body.id, status: 'completed', model_id: 'mine', error: null, bytes: tinyChat().length })
  for (const line of proposed.body.lines.added) expect(config()).toContain(line)
  await expect.poll(async () => (await ask('/api/models/mine')).status).toBe(200)

  const preview = await ask('/api/models/mine?dry_run=true', { method: 'DELETE' })
  expect(preview.body).toEqual({ id: 'mine', lines: { added: [], removed: proposed.body.lines.added }, deleted: [] })
  const removed = await ask('/api/models/mine?delete_files=true', { method: 'DELETE' })
  // Files in the folder that other programs of the hub share stay.
  expect([removed.status, removed.body.deleted]).toEqual([200, []])
  expect(config()).not.toContain('id: mine')
})

test('what cannot be downloaded is a failed download with its reason', async () => {
  const begun = await ask('/api/models', { body: { model: 'hf:Owner/Nothing' } })
  expect(begun.status).toBe(202)
  await expect
    .poll(async () => (await ask('/api/model-downloads')).body.downloads[0])
    .toMatchObject({ status: 'failed', error: { message: expect.stringContaining('Owner/Nothing') as string } })
})

test.each([
  ['a file of the machine', { model: '/etc/passwd' }, 404, 'model_not_found'],
  ['an address', { model: 'http://127.0.0.1/x.gguf' }, 404, 'model_not_found'],
  ['an option', { model: '--help' }, 404, 'model_not_found'],
  ['an unknown name, without a word of files', { model: 'qwen3-8', dry_run: true }, 404, 'model_not_found'],
  ['a size without a unit', { model: 'starter', memory: '--yes' }, 400, 'invalid_value'],
  ['an unknown field', { model: 'starter', source: '/etc' }, 400, 'unknown_parameter'],
])('%s is refused', async (_, body, status, code) => {
  const answer = await ask('/api/models', { body })
  expect(answer.status).toBe(status)
  expect(answer.body.error.code).toBe(code)
})

test('a download that does not exist cannot be cancelled, and an absent model not removed', async () => {
  expect((await ask('/api/model-downloads/download_01J00000000000000000000000', { method: 'DELETE' })).status).toBe(404)
  for (const id of ['absent', '--help', '--config=/etc/hostname']) {
    const answer = await ask(`/api/models/${encodeURIComponent(id)}`, { method: 'DELETE' })
    expect([id, answer.status, answer.body.error.code]).toEqual([id, 404, 'model_not_found'])
  }
})

test('only the owner of the machine may', async () => {
  const { body } = await ask('/api/organizations', { body: { name: 'guests' } })
  const created = await ask(`/api/organizations/${body.organization.id}/tokens`, {
    body: { name: 'guest', scopes: ['admin:read', 'admin:write'] },
  })
  for (const [path, options] of [
    ['/api/model-catalog', {}],
    ['/api/model-downloads', {}],
    ['/api/models', { body: { model: 'starter' } }],
    ['/api/models/fake', { method: 'DELETE' }],
  ] as const) {
    const answer = await ask(path, { ...options, token: created.body.secret })
    expect([path, answer.status, answer.body.error.code]).toEqual([path, 403, 'organization_mismatch'])
  }
})

test('the command line adds and removes models of a server elsewhere', async () => {
  const run = async (...args: string[]) => {
    const ended = await runInProcess(args, { INFER_URL: app.url, INFER_TOKEN: app.secret })
    return { ...ended, stdout: ended.stdout.toString() }
  }
  const before = config()
  const dry = await run('model', 'add', model, '--id', 'far', '--dry-run')
  expect([dry.exitCode, dry.stdout]).toEqual([0, expect.stringMatching(/This is added to infer.yaml of .*id: far/s)])
  expect(config()).toBe(before)
  const added = await run('pull', model, '--id', 'far')
  expect([added.exitCode, added.stdout]).toEqual([0, expect.stringContaining(`${app.url} offers 'far'.`)])
  expect(config()).toContain('id: far')
  const again = await run('model', 'add', model, '--id', 'far', '--yes')
  expect([again.exitCode, again.failure?.message]).toEqual([1, expect.stringContaining("has a model 'far' already")])
  const large = ['model', 'add', 'hf:Owner/Huge-GGUF', '--id', 'huge', '--context', '16777216', '--yes']
  const refused = await run(...large)
  expect([refused.exitCode, refused.failure?.message]).toEqual([
    1,
    expect.stringMatching(/does not fit: it needs at least .* TiB, .* Add it anyway with --force\.$/),
  ])
  expect((await run(...large, '--force')).exitCode).toBe(0)
  for (const id of ['far', 'huge']) {
    const removed = await run('rm', id, '--yes')
    expect([removed.exitCode, removed.stdout]).toEqual([0, `Removed '${id}' from ${app.url}.\n`])
  }
  expect(config()).not.toMatch(/id: (far|huge)/)
})

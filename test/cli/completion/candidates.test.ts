import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { openProgram } from '../../../cli/commands/program.ts'
import { candidatesFor } from '../../../cli/completion/candidates.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'
import { infer, temporaryFolder } from '../_infer.ts'
import { jobId, jobServer, record, says } from '../_jobs.ts'
import { answer, fakeServer, models } from '../_server.ts'

const terminal = openTerminal({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} })
afterEach(() => void vi.unstubAllEnvs())

/** The candidates for these words: values, and what the shell adds. */
async function complete(words: readonly string[], env: Record<string, string> = {}) {
  vi.stubEnv('INFER_DATA_DIR', '/nonexistent/data')
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const { all, paths } = await candidatesFor(words, terminal, openProgram)
  return { values: all.map(({ value }) => value), paths }
}

test('infer __complete prints one candidate per line with a description, then what the shell adds', async () => {
  const { exitCode, stdout, stderr } = await infer(['__complete', '--', 'serve', '--co'])
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 0,
    stdout: '--config\tthe configuration; default: infer.yaml in the data directory, if it exists\n:none\n',
    stderr: '',
  })
})

test('errors are not printed', async () => {
  expect(await infer(['__complete', '--', 'chat', ''], { env: { INFER_URL: 'nonsense' } })).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: expect.stringMatching(/:none\n$/) as string,
  })
})

test('commands are offered, except hidden ones', async () => {
  const { values, paths } = await complete([''])
  expect(values).toEqual(expect.arrayContaining(['run', 'chat', 'serve', 'status', 'model', 'help']))
  expect(values).not.toContain('__complete')
  expect(paths).toBe('none')
})

test.each<[words: string[], values: string[], paths?: string]>([
  [['se'], ['serve', 'service']],
  [
    ['gpu', ''],
    ['list', 'pause', 'resume', 'help'],
  ],
  [['gpu', 'pause', '--t'], ['--timezone']],
  [
    ['token', 'r'],
    ['revoke', 'rotate'],
  ],
  [
    ['service', ''],
    ['install', 'upgrade', 'uninstall', 'help'],
  ],
  [['job', 'c'], ['cancel']],
  [
    ['config', 'explain', 'limits.up'],
    ['limits.upload_retention', 'limits.upload_size'],
  ],
  [
    ['run', 'm', '--priority', ''],
    ['low', 'normal', 'high'],
  ],
  [
    ['run', 'm', '--task', 'image-'],
    ['image-to-image', 'image-to-video'],
  ],
  [['job', 'list', '--task', 'std/r'], ['std/rerank']],
  [
    ['run', 'm', '--resolution', ''],
    ['480p', '720p', '1080p'],
  ],
  [['run', 'm', '--mask', ''], [], 'files'],
  [['video', 'm', '--out', ''], [], 'files'],
  [['help', 'to'], ['token']],
  [
    ['help', 'workf'],
    [
      'workflow',
      'workflows',
      'workflow-branches',
      'workflow-lists',
      'workflow-steps',
      'workflow-nesting',
      'workflow-runs',
      'workflow-approvals',
    ],
  ],
  [['help', 'token', 'sc'], ['scan']],
  [['help', 'routes', ''], []],
  [['serve', '--li'], ['--listen']],
  [
    ['serve', '--log-level', ''],
    ['debug', 'info', 'warn', 'error'],
  ],
  [['serve', '--log-level', 'w'], ['warn']],
  [['serve', '--log-level=w'], ['--log-level=warn']],
  [['serve', '--listen', ''], []],
  [['logs', '--source', 'en'], ['engine']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [['completion', 'bash', ''], []],
  [['serve', '--data-dir', ''], [], 'directories'],
  [['serve', '--config', ''], [], 'files'],
  [['serve', '--https', '--cert', ''], [], 'files'],
  [['serve', '--key', ''], [], 'files'],
  [['restore', ''], [], 'files'],
  [['token', 'scan', 'a', ''], [], 'files'],
  [['run', 'm', '--image', ''], [], 'files'],
  [['run', 'm', 'a prompt', ''], []],
  [['run', 'm', '--', '--'], []],
  [['nonsense', ''], []],
  [['serve', '--nonsense', ''], []],
  [['model', 'add', 'qwen3-8'], ['qwen3-8b'], 'files'],
  [['model', 'catalog', 'whisper-s'], ['whisper-small']],
  [['pull', 'phi-4-'], ['phi-4-mini']],
])('%j: %j', async (words, values, paths = 'none') => {
  const found = await complete(words)
  expect([found.values, found.paths]).toEqual([values, paths])
})

test('an option is not offered twice, unless it may be given twice', async () => {
  const { values } = await complete(['run', 'm', '--seed', '1', '--image', 'a', '--'])
  expect(values).not.toContain('--seed')
  expect(values).toEqual(expect.arrayContaining(['--image', '--system', '--help']))
})

test('models come from the server, limited to those with a task of the command', async () => {
  const { url } = await fakeServer((_, response) => answer(response, 200, models))
  const env = { INFER_URL: url, INFER_TOKEN: 'x' }
  expect((await complete(['chat', ''], env)).values).toEqual(['tiny-chat', 'other-chat'])
  expect((await complete(['run', 'o'], env)).values).toEqual(['other-chat'])
  expect((await complete(['embed', ''], env)).values).toEqual(['tiny-embed'])
  expect((await complete(['logs', '-f', ''], env)).values).toEqual(['tiny-embed', 'tiny-chat', 'other-chat'])
})

test('for images and videos the slugs are offered that fit the command', async () => {
  expect((await complete(['video', ''])).values).toContain('demo/text-to-video')
  const { env } = await jobServer({ other: says({ data: [] }) })
  const slugs = ['draw/text-to-image', 'draw/inpainting', 'clip/fast']
  expect((await complete(['run', ''], env)).values).toEqual(slugs)
  expect((await complete(['run', 'draw/i'], env)).values).toEqual(['draw/inpainting'])
  expect((await complete(['video', ''], env)).values).toEqual(['clip/fast'])
})

test('jobs are offered by id, limited to those that the command can act on', async () => {
  expect((await complete(['job', 'show', ''])).values).toEqual([])
  const running = jobId.replace('2Z', '2Y')
  const page = { jobs: [record({ id: running }), record({ status: 'failed' })], has_more: false }
  const { env, seen } = await jobServer({ list: [says(page)] })
  expect((await complete(['job', 'show', ''], env)).values).toEqual([running, jobId])
  expect((await complete(['job', 'cancel', 'job_'], env)).values).toEqual([running])
  expect((await complete(['job', 'retry', ''], env)).values).toEqual([jobId])
  expect(seen.every(({ path }) => path === '/api/jobs?limit=20')).toBe(true)
})

test('workflows, executions and the nodes of an execution are offered', async () => {
  const ids = ['exec_01K2ZZZZZZ7QK2M9XDAAAAAAAA', 'exec_01K2ZZZZZZ7QK2M9XDBBBBBBBB'] as const
  const of = (id: string, status: string) => ({ id, status, created_at: 1 })
  const { url } = await fakeServer(({ path }, response) => {
    if (path.startsWith('/api/workflows?'))
      return answer(response, 200, {
        workflows: [{ id: 'wf_1', name: 'Story', version: 1, created_at: 1, updated_at: 1 }],
      })
    if (path.startsWith('/api/workflow-executions?'))
      return answer(response, 200, { executions: [of(ids[0], 'running'), of(ids[1], 'failed')] })
    const nodes = [{ node_id: 'paint', task: 'slug/text-to-image', model_id: 'm', status: 'failed' }]
    answer(response, 200, { execution: { ...of(ids[1], 'failed'), nodes } })
  })
  const env = { INFER_URL: url, INFER_TOKEN: 'x' }
  expect(await complete(['workflow', 'run', ''], env)).toEqual({ values: ['wf_1'], paths: 'files' })
  expect(await complete(['workflow', 'show', ''], env)).toEqual({ values: ['wf_1'], paths: 'none' })
  expect(await complete(['workflow', 'check', ''], env)).toEqual({ values: [], paths: 'files' })
  expect((await complete(['execution', 'show', ''], env)).values).toEqual([...ids])
  expect((await complete(['execution', 'cancel', ''], env)).values).toEqual([ids[0]])
  expect((await complete(['execution', 'retry', ids[1], '--from', ''], env)).values).toEqual([
    'failed',
    'start',
    'paint',
  ])
})

test('without a server they come from the configuration of the named data directory', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'infer.yaml'), 'models:\n  - { id: "qwen3:8b", engine: remote, url: "http://h/v1" }\n')
  expect((await complete(['logs', '--data-dir', folder, ''])).values).toEqual(['qwen3:8b'])
})

test.each([
  ['a server that does not answer', 'silent'],
  ['a server that answers with an error', 'refuses'],
  ['a server with an invalid answer', 'nonsense'],
])('with %s the models of the configuration are offered, without delay or error', async (_, kind) => {
  const { url } = await fakeServer((_seen, response) => {
    if (kind === 'refuses') answer(response, 401, { error: { code: 'invalid_api_key', message: 'No.' } })
    else if (kind === 'nonsense') response.end('<html>')
  })
  const { values } = await complete(['chat', ''], { INFER_URL: url, INFER_TOKEN: 'x' })
  expect(values).toContain('infer/tiny-chat')
})

test('an unreadable configuration prints no error', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'infer.yaml'), 'models: [')
  expect((await complete(['chat', ''], { INFER_DATA_DIR: folder })).values).toEqual([])
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'

const status = {
  models: [
    {
      model_id: 'qwen3',
      status: 'warm',
      tasks: ['std/chat-completion'],
      engine: 'gguf',
      queue_depth: 2,
      eta_seconds: null,
      reason: null,
      workers: { ready: 1, loading: 0 },
      later: 'kept',
    },
    {
      model_id: 'llama',
      status: 'unavailable',
      tasks: ['std/chat-completion'],
      reason: 'CUDA out of memory.\u001b[2J',
    },
  ],
}

test('the models of the server are printed as a table', async () => {
  const { url, seen } = await fakeServer((_, response) => answer(response, 200, status))
  const ended = await infer(['model', 'list'], { env: { INFER_URL: url, INFER_TOKEN: 'sk-x' } })
  expect([ended.exitCode, ended.stderr]).toEqual([0, ''])
  expect(seen.map(({ path }) => path)).toEqual(['/api/model-status'])
  const [head, first, second] = ended.stdout.split('\n')
  expect(head).toMatch(/^model +status +engine +waiting +tasks +note$/)
  expect(first).toMatch(/^qwen3 +warm +gguf +2 +std\/chat-completion$/)
  expect(second).toMatch(/^llama +unavailable +- +- +std\/chat-completion +CUDA out of memory\.\[2J$/)
})

test('--prices prints what the use of each model costs', async () => {
  const price = {
    currency: 'EUR',
    input_per_million_tokens: 0.5,
    output_per_million_tokens: 0,
    per_image: 0.04,
    image_prices: [{ size: '1024x1024', quality: 'high', price: 0.08 }],
  }
  const [first, second] = status.models
  const models = [
    { ...first, price },
    { ...second, price: null },
  ]
  const { url } = await fakeServer((_, response) => answer(response, 200, { models }))
  const ended = await infer(['model', 'list', '--prices'], { env: { INFER_URL: url, INFER_TOKEN: 'sk-x' } })
  const lines = ended.stdout.trimEnd().split('\n')
  expect(lines.map(line => line.replaceAll(/ {2,}/g, ' | '))).toEqual([
    'model | price | for',
    'qwen3 | 0.50 EUR | a million input tokens',
    'qwen3 | 0.04 EUR | an image',
    'qwen3 | 0.08 EUR | an image 1024x1024 of high quality',
    'llama | 0 | everything',
  ])
})

test('--json prints the answer of the server', async () => {
  const { url } = await fakeServer((_, response) => answer(response, 200, status))
  const ended = await infer(['model', 'list', '--json'], { env: { INFER_URL: url, INFER_TOKEN: 'sk-x' } })
  expect(json(ended)).toEqual(status)
})

test('an answer that is not from infer is reported as such', async () => {
  const { url } = await fakeServer((_, response) => answer(response, 200, { hello: 'world' }))
  const ended = await infer(['model', 'list'], { env: { INFER_URL: url, INFER_TOKEN: 'sk-x' } })
  expect(ended.exitCode).toBe(1)
  expect(ended.stderr).toContain('This version of infer cannot read the response')
})

test('without a server the configuration is listed', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(
    join(dataDir, 'infer.yaml'),
    'models:\n  - id: mine\n    source: /m.gguf\n  - id: off\n    enabled: false\n',
  )
  const ended = await infer(['model', 'list', '--data-dir', dataDir])
  expect(ended.exitCode).toBe(0)
  expect(ended.stdout).toMatch(/^mine +configured +gguf/m)
  expect(ended.stdout).toMatch(/^off +disabled/m)
  expect(ended.stderr).toContain('infer serve')
  const listed = json(await infer(['model', 'list', '--json', '--data-dir', dataDir]))
  expect(listed).toMatchObject({ models: [{ model_id: 'mine', status: 'configured' }, { model_id: 'off' }] })
})

test('an invalid configuration exits with 65 and names the line', async () => {
  const dataDir = temporaryFolder()
  const path = join(dataDir, 'other.yaml')
  writeFileSync(path, 'models:\n  - id: "a b"\n')
  const ended = await infer(['model', 'list', '--data-dir', dataDir, '--config', path])
  expect(ended.exitCode).toBe(65)
  expect(ended.stderr).toContain(`${path}:2`)
})

test('a missing configuration exits with 74', async () => {
  const dataDir = temporaryFolder()
  const ended = await infer(['model', 'list', '--data-dir', dataDir, '--config', join(dataDir, 'none.yaml')])
  expect(ended.exitCode).toBe(74)
  expect(ended.stderr).toContain('none.yaml')
})

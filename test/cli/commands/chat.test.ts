import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { answer, chunk, fakeServer, models, streamWords } from '../_server.ts'

const reply = (words: string[]) => (seen: { path: string }, response: Parameters<typeof answer>[0]) =>
  seen.path === '/std/v1/models' ? answer(response, 200, models) : streamWords(response, words)

const far = (url: string) => ({ INFER_URL: url, INFER_TOKEN: 'sk-test' })

test('in a pipe the prompt is read from standard input and the answer goes to standard output', async () => {
  const { url, seen } = await fakeServer(reply(['Hel', 'lo ', '世界']))
  const ended = await infer(['chat'], { env: far(url), input: 'Say hello\n' })
  expect(ended).toEqual({ exitCode: 0, stdout: 'Hello 世界\n', stderr: '' })
  expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /std/v1/models',
    'POST /std/v1/chat/completions',
  ])
  expect(seen[1]).toMatchObject({
    authorization: 'Bearer sk-test',
    body: { model: 'tiny-chat', messages: [{ role: 'user', content: 'Say hello' }], stream: true },
  })
})

test('an answer that ends with a newline gets no second one', async () => {
  const { url } = await fakeServer(reply(['Hello\n']))
  expect((await infer(['chat'], { env: far(url), input: 'x' })).stdout).toBe('Hello\n')
})

test('the flags reach the server, and a model named by a flag is not looked up', async () => {
  const { url, seen } = await fakeServer(reply(['x']))
  const args = ['chat', 'mine', '--system', 'Be brief.', '--temperature', '0', '--max-tokens', '5', '--seed', '7']
  expect((await infer(args, { env: far(url), input: 'Hi' })).exitCode).toBe(0)
  expect(seen).toHaveLength(1)
  expect(seen[0]!.body).toMatchObject({
    model: 'mine',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ],
    temperature: 0,
    max_completion_tokens: 5,
    seed: 7,
  })
})

test('--json prints the whole answer of the API', async () => {
  const whole = { id: 'chatcmpl-1', choices: [{ message: { role: 'assistant', content: 'Hello' } }], usage: {} }
  const { url, seen } = await fakeServer((_, response) => answer(response, 200, whole))
  const ended = await infer(['chat', 'm', '--json'], { env: far(url), input: 'Hi' })
  expect([ended.exitCode, json(ended)]).toEqual([0, whole])
  expect(seen[0]!.body).not.toHaveProperty('stream')
})

test('a notice that the answer was cut at its maximum length goes to standard error only', async () => {
  const { url } = await fakeServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`${chunk({ content: 'Hel' })}${chunk({}, 'length')}data: [DONE]\n\n`)
  })
  const ended = await infer(['chat', 'm'], { env: far(url), input: 'Hi' })
  expect([ended.exitCode, ended.stdout]).toEqual([0, 'Hel\n'])
  expect(ended.stderr).toContain('--max-tokens')
})

test('the request is repeated while the model is loading', async () => {
  let asked = 0
  const { url } = await fakeServer((_, response) => {
    if (++asked < 3)
      answer(response, 503, { error: { code: 'model_warming_up', message: 'Loading.' } }, { 'retry-after-ms': '20' })
    else streamWords(response, ['ready'])
  })
  const ended = await infer(['chat', 'm'], { env: far(url), input: 'Hi' })
  expect([ended.exitCode, ended.stdout, asked]).toEqual([0, 'ready\n', 3])
  expect(ended.stderr).toContain('Loading m…')
})

const error = (code: string, message: string) => ({ error: { code, message, type: 'x', param: null } })

test.each([
  ['an error of the server', (url: string) => ({ env: far(url), input: 'Hi' }), 'No model'],
  [
    'an error of the server, with --json as an error body',
    (url: string) => ({ env: far(url), input: 'Hi' }),
    '"code":"model_not_found"',
  ],
])('%s exits with 1', async (name, options, said) => {
  const { url } = await fakeServer((_, response) =>
    answer(response, 404, error('model_not_found', "No model 'm'."), { 'x-request-id': 'req_1' }),
  )
  const ended = await infer(['chat', 'm', ...(name.includes('--json') ? ['--json'] : [])], options(url))
  expect([ended.exitCode, ended.stdout]).toEqual([1, ''])
  expect(ended.stderr).toContain(said)
  expect(ended.stderr).toContain('req_1')
})

test('a failure in mid-stream exits with 1, after the text so far', async () => {
  const { url } = await fakeServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`${chunk({ content: 'Hel' })}data: ${JSON.stringify(error('worker_error', 'Engine exited (3).'))}\n\n`)
  })
  const ended = await infer(['chat', 'm'], { env: far(url), input: 'Hi' })
  expect([ended.exitCode, ended.stdout]).toEqual([1, 'Hel'])
  expect(ended.stderr).toContain('Engine exited (3).')
})

test.each([
  ['closed early', (socket: { destroy(): void; end(): void }) => socket.end()],
  ['broken', (socket: { destroy(): void; end(): void }) => socket.destroy()],
])('a stream that is %s exits with 1', async (_, cut) => {
  const { url } = await fakeServer((_, response, request) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(chunk({ content: 'Hel' }), () => cut(request.socket))
  })
  const ended = await infer(['chat', 'm'], { env: far(url), input: 'Hi' })
  expect([ended.exitCode, ended.stdout]).toEqual([1, 'Hel'])
  expect(ended.stderr).toContain('was lost')
})

test('a missing prompt is wrong usage', async () => {
  const { url, seen } = await fakeServer(reply(['x']))
  const ended = await infer(['chat', 'm'], { env: far(url), input: '\n' })
  expect(ended.exitCode).toBe(64)
  expect(seen).toEqual([])
})

test('a server without a chat model is refused, and the message says what to do', async () => {
  const { url } = await fakeServer((_, response) =>
    answer(response, 200, { data: [{ id: 'e', tasks: ['std/embeddings'] }] }),
  )
  const ended = await infer(['chat'], { env: far(url), input: 'Hi' })
  expect(ended.exitCode).toBe(1)
  expect(ended.stderr).toContain('offers no chat model')
})

test('the server of the data directory is found without a flag', async () => {
  const { url, seen } = await fakeServer(reply(['local']))
  const dataDir = temporaryFolder()
  writeFileSync(
    join(dataDir, 'server.json'),
    JSON.stringify({ url: url.replace('127.0.0.1', '0.0.0.0'), pid: process.pid }),
  )
  writeFileSync(join(dataDir, 'root-token'), 'sk-root\n')
  const ended = await infer(['chat', '--data-dir', dataDir], { input: 'Hi' })
  expect(ended).toEqual({ exitCode: 0, stdout: 'local\n', stderr: '' })
  expect(seen[0]!.authorization).toBe('Bearer sk-root')
})

const gonePid = 2 ** 22 + 1
test.each([
  ['nothing', undefined],
  ['a server that has stopped', JSON.stringify({ url: 'http://127.0.0.1:9', pid: gonePid })],
  ['an address where nothing listens', JSON.stringify({ url: 'http://127.0.0.1:9', pid: process.pid })],
  ['an incomplete file', '{"url":'],
])('with %s in the data directory no running server is found', async (_, file) => {
  const dataDir = join(temporaryFolder(), 'data')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'root-token'), 'sk-root\n')
  if (file !== undefined) writeFileSync(join(dataDir, 'server.json'), file)
  const ended = await infer(['chat'], { env: { INFER_DATA_DIR: dataDir }, input: 'Hi' })
  expect(ended.exitCode).toBe(1)
  expect(ended.stderr).toContain(`No server is running on ${dataDir}. Start one with: infer serve`)
})

test.each([
  ['an invalid address', { INFER_URL: 'gpu.example', INFER_TOKEN: 'x' }, 64, 'which is not a URL'],
  ['no token', { INFER_URL: 'http://127.0.0.1:9' }, 64, 'INFER_TOKEN is not'],
  ['a server that is not reachable', { INFER_URL: 'http://127.0.0.1:9', INFER_TOKEN: 'x' }, 1, 'cannot be reached'],
])('INFER_URL with %s', async (_, env, exitCode, said) => {
  const ended = await infer(['chat'], { env, input: 'Hi' })
  expect(ended.exitCode).toBe(exitCode)
  expect(ended.stderr).toContain(said)
})

test('the base URL of an OpenAI client is accepted, and a redirect is not followed with the token', async () => {
  const { url, seen } = await fakeServer((_, response) =>
    response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
  )
  const ended = await infer(['chat', 'm'], { env: far(`${url}/std/v1/`), input: 'Hi' })
  expect(seen[0]!.path).toBe('/std/v1/chat/completions')
  expect(ended.exitCode).toBe(1)
  expect(ended.stderr).toContain('answered with status 302')
})

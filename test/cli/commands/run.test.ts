import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { entry, infer, json, temporaryFolder } from '../_infer.ts'
import { answer, chatServer, chunk, streamWords } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

const far = (url: string) => ({ INFER_URL: url, INFER_TOKEN: 'sk-test' })
const question = (body: unknown) => (body as { messages: unknown[] }).messages

test('the prompt is sent and the answer is streamed', async () => {
  const { url, seen } = await chatServer((_, response) => streamWords(response, ['Hel', 'lo ', '世界']))
  const ended = await infer(['run', 'm', 'Say', 'hello'], { env: far(url) })
  expect(ended).toEqual({ exitCode: 0, stdout: 'Hello 世界\n', stderr: '' })
  expect(seen).toHaveLength(1)
  expect(seen[0]).toMatchObject({
    path: '/std/v1/chat/completions',
    authorization: 'Bearer sk-test',
    body: { model: 'm', stream: true, messages: [{ role: 'user', content: 'Say hello' }] },
  })
})

test('piped text follows the prompt, and without a prompt it is the prompt', async () => {
  const { url, seen } = await chatServer((_, response) => streamWords(response, ['ok']))
  await infer(['run', 'm', 'summarise'], { env: far(url), input: 'line 1\nline 2\n' })
  await infer(['run', 'm'], { env: far(url), input: 'only this\n' })
  expect(seen.map(({ body }) => question(body))).toEqual([
    [{ role: 'user', content: 'summarise\n\nline 1\nline 2' }],
    [{ role: 'user', content: 'only this' }],
  ])
})

test('a pipe that stays open is waited for, and a notice says so', async () => {
  const { url, seen } = await chatServer((_, response) => streamWords(response, ['ok']))
  const child = spawn(process.execPath, [entry, 'run', 'm', 'summarise'], {
    env: { PATH: process.env.PATH, ...far(url) },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  await once(child.stderr, 'data').then(([said]) => expect(String(said)).toContain('add: < /dev/null'))
  child.stdin.end('slow text')
  await once(child, 'close')
  expect(seen.map(({ body }) => question(body))).toEqual([[{ role: 'user', content: 'summarise\n\nslow text' }]])
})

test('the flags reach the server, images as data URLs', async () => {
  const { url, seen } = await chatServer((_, response) => streamWords(response, ['a cat']))
  const picture = join(temporaryFolder(), 'cat')
  writeFileSync(picture, 'GIF89a')
  const flags = ['--system', 'Be brief.', '--temperature', '0', '--max-tokens', '5', '--seed', '7', '--image', picture]
  expect((await infer(['run', 'm', 'What is this?', ...flags], { env: far(url) })).exitCode).toBe(0)
  expect(seen[0]!.body).toMatchObject({
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: 'data:image/gif;base64,R0lGODlh' } },
        ],
      },
    ],
    temperature: 0,
    max_completion_tokens: 5,
    seed: 7,
  })
})

test('--json prints the whole answer of the API', async () => {
  const whole = { id: 'chatcmpl-1', choices: [{ message: { role: 'assistant', content: 'Hello' } }], usage: {} }
  const { url, seen } = await chatServer((_, response) => answer(response, 200, whole))
  const ended = await infer(['run', 'm', 'Hi', '--json'], { env: far(url) })
  expect([ended.exitCode, json(ended)]).toEqual([0, whole])
  expect(seen[0]!.body).not.toHaveProperty('stream')
})

const thinker = (_: unknown, response: Parameters<typeof answer>[0]) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(chunk({ reasoning_content: 'Let me ' }))
  response.write(chunk({ reasoning_content: 'think.' }))
  response.write(chunk({ content: 'Yes.' }))
  response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`)
}

test('reasoning goes to standard error, or nowhere', async () => {
  const { url } = await chatServer(thinker)
  const shown = await infer(['run', 'm', 'Hi'], { env: far(url) })
  expect(shown).toEqual({ exitCode: 0, stdout: 'Yes.\n', stderr: 'Let me think.\n\n' })
  const hidden = await infer(['run', 'm', 'Hi', '--hide-reasoning'], { env: far(url) })
  expect(hidden).toEqual({ exitCode: 0, stdout: 'Yes.\n', stderr: '' })
})

test('--figures prints the speed on standard error', async () => {
  const { url } = await chatServer((_, response) => streamWords(response, ['one ', 'two']))
  const ended = await infer(['run', 'm', 'Hi', '--figures'], { env: far(url) })
  expect(ended.stdout).toBe('one two\n')
  expect(ended.stderr).toMatch(/^2 tokens · [\d.]+ tokens\/s · [\d.]+ m?s\n$/)
})

test('the request is repeated while the model is loading, and a pipe gets one notice', async () => {
  let asked = 0
  const { url } = await chatServer((_, response) => {
    if (++asked < 4)
      answer(response, 503, { error: { code: 'model_warming_up', message: 'Loading.' } }, { 'retry-after-ms': '20' })
    else streamWords(response, ['ready'])
  })
  const ended = await infer(['run', 'm', 'Hi'], { env: far(url) })
  expect(ended).toEqual({ exitCode: 0, stdout: 'ready\n', stderr: 'Loading m…\n' })
})

test('a failure in mid-stream exits with 1, after the text so far', async () => {
  const { url } = await chatServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(
      `${chunk({ content: 'Hel' })}data: {"error":{"code":"worker_error","message":"Engine exited (3)."}}\n\n`,
    )
  })
  const ended = await infer(['run', 'm', 'Hi'], { env: far(url) })
  expect([ended.exitCode, ended.stdout]).toEqual([1, 'Hel'])
  expect(ended.stderr).toContain('Engine exited (3).')
})

test('Ctrl-C ends the request and exits with 130', async () => {
  const gone = Promise.withResolvers<void>()
  const { url } = await chatServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(chunk({ content: 'and so on' }))
    response.on('close', () => gone.resolve())
  })
  const child = spawn(process.execPath, [entry, 'run', 'm', 'Hi'], {
    env: { PATH: process.env.PATH, ...far(url) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', piece => (stderr += String(piece)))
  await once(child.stdout, 'data')
  child.kill('SIGINT')
  const [exitCode] = (await once(child, 'close')) as [number]
  expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: '' })
  await gone.promise
})

test('when the reader of the output closes, the program exits without a message and aborts the request', async () => {
  const gone = Promise.withResolvers<void>()
  const { url } = await chatServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const talking = setInterval(() => response.write(chunk({ content: 'and so on ' })), 5)
    response.on('close', () => {
      clearInterval(talking)
      gone.resolve()
    })
  })
  const child = spawn(process.execPath, [entry, 'run', 'm', 'Hi'], {
    env: { PATH: process.env.PATH, ...far(url) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', piece => (stderr += String(piece)))
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const [exitCode] = (await once(child, 'close')) as [number]
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  await gone.promise
})

test.each([['run', 'm', 'Hi'], ['embed', 'm', 'Hi'], ['rerank', 'm', 'q', 'd'], ['status'], ['logs']])(
  '%s without a server prints one sentence that says how to start one',
  async (...args) => {
    const folder = temporaryFolder()
    const ended = await infer([...args, '--data-dir', folder])
    expect(ended).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `Error: No server is running on ${folder}. Start one with: infer serve\n`,
    })
  },
)

test.each([
  [['run', 'm'], 'There is no prompt.'],
  [['run'], "Missing required argument 'model'"],
  [['run', 'm', 'Hi', '--image', '/nowhere/cat.png'], 'cannot be read'],
  [['embed', 'm'], 'There is no text.'],
  [['rerank', 'm'], "Missing required argument 'query'"],
  [['rerank', 'm', 'q'], 'There are no documents.'],
  [['logs', '--lines', 'all'], 'Write a whole number from 0 to 10000.'],
  [['logs', '--source', 'me'], 'server, engine'],
  [['status', '--every', 'now'], 'Write a duration'],
])('%j is refused in one sentence', async (args, said) => {
  const { exitCode, stdout, stderr } = await infer(args)
  expect([exitCode === 64 || exitCode === 74, stdout]).toEqual([true, ''])
  expect(stderr).toContain(said)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
})

test.skipIf(!hasTerminal)('in a terminal reasoning is faint and control characters have no effect', async () => {
  const { url } = await chatServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(chunk({ reasoning_content: 'Hm.' }))
    response.end(`${chunk({ content: 'Yes\u001b[2J.' })}${chunk({}, 'stop')}data: [DONE]\n\n`)
  })
  const terminal = inTerminal(['run', 'm', 'Hi'], far(url))
  expect(await terminal.ends()).toBe(0)
  expect(terminal.everything()).toContain('\u001b[2mHm.\u001b[22m')
  expect(terminal.everything()).toContain('Yes[2J.\r\n')
})

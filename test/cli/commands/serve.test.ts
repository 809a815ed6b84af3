import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { greeting } from '../../../cli/serve/greeting.ts'
import { tryNext } from '../../../cli/serve/try-next.ts'
import { plainPaint } from '../../../cli/terminal/styled-line.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { prepare, serve } from '../_serve.ts'
import { answer, fakeServer, streamWords } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

test('a first start prints the address, keeps the secret out of a pipe, and exits with 0 on SIGTERM', async () => {
  const dataDir = prepare()
  const first = await serve(dataDir)
  const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  await first.until(() => first.stdout().includes('organization'))
  expect(first.stdout()).toContain(
    `model far std/chat-completion,std/completion\nroot-token ${join(dataDir, 'root-token')}\n`,
  )
  expect(first.stdout()).not.toContain(secret)
  expect(statSync(join(dataDir, 'root-token')).mode & 0o777).toBe(0o600)
  expect(statSync(join(dataDir, 'server.json')).mode & 0o777).toBe(0o600)
  first.child.kill('SIGUSR1')
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
  first.child.kill('SIGHUP')
  first.child.kill('SIGTERM')
  expect(await first.ends()).toBe(0)
  expect(first.stderr()).not.toContain(secret)
  // SIGUSR1 opens no inspector.
  expect(first.stderr()).not.toContain('Debugger')
  expect(existsSync(join(dataDir, 'server.json'))).toBe(false)

  const second = await serve(dataDir)
  second.child.kill('SIGINT')
  expect(await second.ends()).toBe(0)
  expect(second.stdout()).not.toContain('organization')
})

test('commands find the running server, and tokens created beside it are accepted at once', async () => {
  const { url: upstream } = await fakeServer((_, response) => streamWords(response, ['from ', 'afar']))
  const dataDir = prepare(upstream)
  const server = await serve(dataDir)
  const run = (...args: string[]) => infer([...args, '--data-dir', dataDir], { input: 'Hi' })
  expect(await run('chat')).toEqual({ exitCode: 0, stdout: 'from afar\n', stderr: '' })
  expect(json(await run('model', 'list', '--json'))).toMatchObject({ models: [{ model_id: 'far', engine: 'remote' }] })
  const { secret } = json(await run('token', 'create', '--json')) as { secret: string }
  const there = { env: { INFER_URL: server.url, INFER_TOKEN: secret }, input: 'Hi' }
  expect((await infer(['chat', 'far'], there)).stdout).toBe('from afar\n')
  expect((await run('db', 'check')).exitCode).toBe(0)
  expect((await run('backup', join(dataDir, 'copy.db'))).exitCode).toBe(0)

  const refused = await run('restore', join(dataDir, 'copy.db'))
  expect(refused.exitCode).toBe(64)
  expect(refused.stderr).toContain('Another infer is running')
  const doctor = json(await run('doctor', '--json')) as { findings: { name: string; detail: string }[] }
  expect(doctor.findings.find(({ name }) => name === 'address')?.detail).toContain(server.url)
})

test('infer doctor says that a server listens on all addresses', async () => {
  const dataDir = prepare()
  const { url } = await serve(dataDir, ['--listen', '0.0.0.0:0'])
  const doctor = json(await infer(['doctor', '--json', '--data-dir', dataDir])) as {
    findings: { name: string; detail: string }[]
  }
  expect(doctor.findings.find(({ name }) => name === 'address')?.detail).toContain(
    `the server listens on 0.0.0.0:${new URL(url).port}, here ${url} (process `,
  )
})

test('a second server on the same data directory is refused with 64, even if its address is in use', async () => {
  const dataDir = prepare()
  const { url } = await serve(dataDir)
  const taken = url.replace('http://', '')
  for (const listen of ['127.0.0.1:0', taken]) {
    const second = await infer(['serve', '--data-dir', dataDir, '--listen', listen])
    expect([listen, second.exitCode]).toEqual([listen, 64])
    expect(second.stderr).toContain('Another infer is running on the data directory')
    expect(second.stderr).not.toContain('Cannot listen')
  }
})

test('an address in use exits with 74', async () => {
  const { url } = await fakeServer(() => undefined)
  const ended = await infer(['serve', '--data-dir', prepare(), '--listen', url.replace('http://', '')])
  expect(ended.exitCode).toBe(74)
  expect(ended.stderr).toContain('--listen')
})

test('an invalid configuration exits with 65 and names the line', async () => {
  const dataDir = prepare()
  writeFileSync(join(dataDir, 'infer.yaml'), 'listen: 127.0.0.1:0\nmodels: 3\n')
  const ended = await infer(['serve', '--data-dir', dataDir])
  expect(ended.exitCode).toBe(65)
  expect(ended.stderr).toContain('infer.yaml:2')
})

test('a damaged database exits with 65', async () => {
  const dataDir = prepare()
  writeFileSync(join(dataDir, 'infer.db'), 'no database '.repeat(1000))
  expect((await infer(['serve', '--data-dir', dataDir])).exitCode).toBe(65)
})

test('a drain waits for a running answer; a second signal ends it at once', async () => {
  const started = Promise.withResolvers<void>()
  const { url: upstream } = await fakeServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}\n\n')
    started.resolve()
  })
  const dataDir = prepare(upstream)
  const server = await serve(dataDir, ['--drain-timeout', '60s'])
  const chat = infer(['chat', '--data-dir', dataDir], { input: 'Hi' })
  await started.promise
  server.child.kill('SIGTERM')
  await server.until(() => server.stderr().includes('"Stopping"'))
  server.child.kill('SIGTERM')
  expect(await server.ends()).toBe(128 + 15)
  expect((await chat).exitCode).toBe(1)
})

test('after an unexpected error the server exits with 70, and the last line gives the reason', async () => {
  const throwing = 'process.on("SIGUSR2",()=>{throw new Error("injected")})'
  const server = await serve(prepare(), [], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(throwing)}`,
  })
  server.child.kill('SIGUSR2')
  expect(await server.ends()).toBe(70)
  expect(JSON.parse(server.stderr().trimEnd().split('\n').at(-1)!)).toMatchObject({
    level: 'error',
    cause: expect.stringContaining('injected') as string,
  })
})

test.skipIf(!hasTerminal)('in a terminal it prints a greeting, and Ctrl-C stops it', async () => {
  const dataDir = prepare()
  const terminal = inTerminal(['serve', '--data-dir', dataDir])
  await terminal.sees('is ready at ')
  await terminal.sees('far')
  await terminal.sees('Root token')
  await terminal.sees('Try next')
  await terminal.sees(`npm run infer -- chat --data-dir ${dataDir}`)
  await terminal.sees('Stop: Ctrl-C')
  terminal.types('\u0003')
  await terminal.sees('Finishing running requests.')
  expect(await terminal.ends()).toBe(0)
})

test('the commands of the greeting work when pasted', async () => {
  const { url, seen } = await fakeServer((_, response) =>
    answer(response, 200, {
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: 'far',
      choices: [{ index: 0, message: { role: 'assistant', content: 'It works' }, finish_reason: 'stop' }],
    }),
  )
  const tokenPath = join(temporaryFolder(), "it's a token")
  writeFileSync(tokenPath, 'sk-infer-pasted\n')
  const models = [{ id: 'org/far', tasks: ['std/chat-completion'] }]
  const facts = { own: { line: (args: string) => `infer ${args}`, folder: undefined }, url, tokenPath, models }
  const shown = greeting({ ...facts, urls: [url], version: '1', firstStart: undefined }, plainPaint)
  const [, curl, , javascript] = tryNext(facts)
  const hasCurl = spawnSync('curl', ['--version']).status === 0
  for (const { lines } of [javascript!, ...(hasCurl ? [curl!] : [])]) {
    expect(lines.every(line => shown.includes(`  ${line}\n`))).toBe(true)
    const { stdout } = await execa('sh', ['-c', lines.join('\n')], {
      env: { PATH: `${join(process.execPath, '..')}:${process.env.PATH}` },
    })
    expect(stdout).toContain('It works')
  }
  for (const { authorization, path } of seen)
    expect(`${authorization} ${path}`).toBe('Bearer sk-infer-pasted /std/v1/chat/completions')
  expect(seen[0]!.body).toEqual({ model: 'org/far', messages: [{ role: 'user', content: 'Hello' }] })
})

test('SIGHUP reloads the configuration: an invalid one is logged, a valid one takes effect', async () => {
  const dataDir = prepare()
  const path = join(dataDir, 'infer.yaml')
  const { child, until, stderr } = await serve(dataDir)
  child.kill('SIGHUP')
  await until(() => stderr().includes('"The configuration was read again"'))
  writeFileSync(path, `${readFileSync(path, 'utf8')}modles: []\n`)
  child.kill('SIGHUP')
  await until(() => stderr().includes('keeps the previous one'))
  expect(stderr()).toMatch(/infer\.yaml:4:1: There is no setting 'modles'. Did you mean 'models'\?/)
  expect(child.exitCode).toBeNull()
})

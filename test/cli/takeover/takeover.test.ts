import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { unitOf } from '../../../cli/service/unit.ts'
import { fakeModel } from '../../_app.ts'
import { full } from '../../_full.ts'
import { startLoad } from '../../_takeover-load.ts'
import { entry, inferProcess, temporaryFolder } from '../_infer.ts'
import { prepare, serve } from '../_serve.ts'
import { billed, exitOf, secretOf, startEngine, stopAtEnd, takeOver } from './_takeover.ts'

test('a server takes over under load: no request fails, streams end, and each is billed once', async () => {
  const dataDir = prepare(await startEngine())
  const first = await serve(dataDir)
  const load = startLoad({
    url: first.url,
    secret: secretOf(dataDir),
    model: 'far',
    ...(full ? { streams: 200, perSecond: 300, jobsPerSecond: 50 } : { streams: 20, perSecond: 50, jobsPerSecond: 10 }),
  })
  await expect.poll(() => load.answered).toBeGreaterThan(20)
  // Longer than the old server waits for jobs.
  const slow = await fetch(`${first.url}/api/jobs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secretOf(dataDir)}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      task: 'std/chat-completion',
      model: 'far',
      input: { messages: [{ role: 'user', content: 'mode:slow,ms=3000' }] },
    }),
  })
  expect(slow.ok).toBe(true)
  const { exitCode, stderr, pid } = await takeOver(dataDir)
  expect(stderr).toContain('Handing over')
  expect(exitCode).toBe(0)
  expect(pid).not.toBe(first.child.pid)
  const { answered } = load
  await expect.poll(() => load.answered).toBeGreaterThan(answered + 20)
  const total = await load.stop()
  expect(total.failures).toEqual([])
  expect(await exitOf(first.child)).toBe(0)
  // The new one writes records every 50 ms.
  await expect.poll(() => billed(dataDir)).toBe(total.answered + 1)
  const { url } = JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8')) as { url: string }
  expect(url).toBe(first.url)
})

test('a server that cannot start leaves the running one as it was, and says why', async () => {
  const dataDir = prepare(await startEngine())
  const first = await serve(dataDir)
  const config = readFileSync(join(dataDir, 'infer.yaml'), 'utf8')
  writeFileSync(join(dataDir, 'infer.yaml'), 'models: [{id: 7}]\n')
  const refused = await takeOver(dataDir)
  expect(refused.stderr).toContain('infer.yaml')
  expect(refused.exitCode).not.toBe(0)
  writeFileSync(join(dataDir, 'infer.yaml'), config)

  const elsewhere = await takeOver(dataDir, '--listen', '127.0.0.1:1')
  expect(elsewhere.stderr).toContain('keeps its address')

  const headers = { authorization: `Bearer ${secretOf(dataDir)}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'far', messages: [{ role: 'user', content: 'hello' }] })
  expect((await fetch(`${first.url}/std/v1/chat/completions`, { method: 'POST', headers, body })).status).toBe(200)
  expect(JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8'))).toMatchObject({ pid: first.child.pid })

  // A job that was acknowledged before runs once, in the server after.
  const job = await fetch(`${first.url}/api/jobs`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      task: 'std/chat-completion',
      model: 'far',
      input: { messages: [{ role: 'user', content: 'mode:slow,ms=3000' }] },
    }),
  })
  const accepted = (await job.json()) as { id: string }
  expect([200, 201, 202], JSON.stringify(accepted)).toContain(job.status)
  const waiting = fetch(`${first.url}/api/jobs/${accepted.id}?wait=30`, { headers }).then(answer => answer.json())
  const execution = await fetch(`${first.url}/api/workflows/run`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      dag: {
        nodes: {
          slow: {
            task: 'std/chat-completion',
            model_id: 'far',
            inputs: { messages: [{ role: 'user', content: 'mode:slow,ms=6000' }] },
          },
        },
      },
    }),
  })
  const begun = (await execution.json()) as { execution: { id: string } }
  const executed = fetch(`${first.url}/api/workflow-executions/${begun.execution.id}?wait=50`, {
    headers,
    signal: AbortSignal.timeout(30_000),
  }).then(answer => answer.json())
  // Submitted to the server before, with a body that ends after it has handed over.
  const late = request(`${first.url}/api/jobs`, { method: 'POST', headers })
  const text = JSON.stringify({
    task: 'std/chat-completion',
    model: 'far',
    input: { messages: [{ role: 'user', content: 'hello' }] },
  })
  late.write(text.slice(0, 20))
  expect((await takeOver(dataDir)).exitCode).toBe(0)
  expect(await waiting).toMatchObject({ status: 'completed', attempts: 1 })
  expect(await executed).toMatchObject({ execution: { status: 'completed' } })
  late.end(text.slice(20))
  const [answer] = (await once(late, 'response')) as [IncomingMessage]
  const lateJob = (await json(answer)) as { id: string }
  expect(answer.statusCode, JSON.stringify(lateJob)).toBe(job.status)
  const lateEnd = await fetch(`${first.url}/api/jobs/${lateJob.id}?wait=10`, { headers })
  expect(await lateEnd.json()).toMatchObject({ status: 'completed' })
  expect(billed(dataDir)).toBe(4)
})

test('service upgrade replaces the server of the unit, which names itself to systemd', async () => {
  const dataDir = prepare()
  const folder = temporaryFolder()
  // It may take its time: the command ends afterwards.
  const notify = `#!/bin/sh\nsleep 0.5\necho "$NOTIFY_SOCKET $@" >> ${folder}/notified\n`
  writeFileSync(join(folder, 'systemd-notify'), notify)
  chmodSync(join(folder, 'systemd-notify'), 0o755)
  const unit = { scope: 'user', command: [process.execPath, entry, 'serve'], dataDir, user: undefined } as const
  writeFileSync(join(folder, 'unit'), unitOf({ ...unit, stopSeconds: 60 }))
  writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\ncat ${folder}/unit\n`, { mode: 0o755 })
  const PATH = `${folder}:${process.env.PATH}`
  const first = await serve(dataDir, [], { NOTIFY_SOCKET: '@test', PATH })
  const notified = () => existsSync(join(folder, 'notified')) && readFileSync(join(folder, 'notified'), 'utf8')
  await expect.poll(notified).toBe(`@test --ready --pid=${first.child.pid}\n`)
  const { exitCode, stdout, stderr } = await inferProcess(['service', 'upgrade', '--user', '--json'], {
    env: { PATH },
  })
  const atEnd = notified()
  expect(exitCode, stderr).toBe(0)
  const { pid, previous_pid } = JSON.parse(stdout) as { pid: number; previous_pid: number }
  stopAtEnd(pid)
  expect(previous_pid).toBe(first.child.pid)
  expect(await exitOf(first.child)).toBe(0)
  expect(atEnd).toBe(`@test --ready --pid=${first.child.pid}\n@test --ready --pid=${pid}\n`)
})

test('a job that the old server has stored in the new one holds its cost until it ends there, and stops when a client of the old one leaves', async () => {
  const dataDir = prepare()
  const upstream = await startEngine()
  const painter = JSON.stringify(fakeModel('painter', [], { tasks: ['slug/text-to-image'], concurrency: 1 }))
  const price = '{input_per_million_tokens: 1000000}'
  writeFileSync(
    join(dataDir, 'infer.yaml'),
    `listen: 127.0.0.1:0\nlimits: {min_free_disk: 1MiB, ballast: 1MiB}\nmodels: [{id: far, engine: remote, url: '${upstream}/v1', price: ${price}}, ${painter}]\n`,
  )
  const first = await serve(dataDir)
  const headers = { authorization: `Bearer ${secretOf(dataDir)}`, 'content-type': 'application/json' }
  const post = (path: string) => request(`${first.url}${path}`, { method: 'POST', headers, agent: false })
  const read = async (path: string) => (await fetch(`${first.url}${path}`, { headers })).json()
  const late = post('/api/jobs')
  const messages = [{ role: 'user', content: 'mode:slow,ms=5000' }]
  const text = JSON.stringify({ task: 'std/chat-completion', model: 'far', input: { messages } })
  late.write(text.slice(0, 20))
  const image = post('/std/v1/images/generations').on('error', () => {})
  image.end(JSON.stringify({ model: 'painter', prompt: 'mode:hang', size: '64x64' }))
  const statusOfImage = async () =>
    ((await read('/api/jobs?model_id=painter')) as { jobs: { status: string }[] }).jobs[0]?.status
  const busy = async () =>
    ((await read('/api/system/status')) as { engines: { model_id: string; busy: number }[] }).engines
      .filter(({ model_id }) => model_id === 'painter')
      .map(engine => engine.busy)
  await expect.poll(statusOfImage).toBe('processing')
  expect((await takeOver(dataDir)).exitCode).toBe(0)
  await expect.poll(statusOfImage).toBe('processing')
  expect(await busy()).toEqual([1])
  image.destroy()
  await expect.poll(statusOfImage).toBe('cancelled')
  await expect.poll(busy, { timeout: 5_000 }).toEqual([0])
  late.end(text.slice(20))
  const [answer] = (await once(late, 'response')) as [IncomingMessage]
  const { id } = (await json(answer)) as { id: string }
  expect(await exitOf(first.child)).toBe(0)
  expect(await read(`/api/jobs/${id}`)).toMatchObject({ status: 'processing' })
  expect(await read('/api/me')).toMatchObject({
    spend: { organization: { held: expect.toSatisfy((held: number) => held > 0) } },
  })
  expect(await read(`/api/jobs/${id}?wait=20`)).toMatchObject({ status: 'completed' })
  expect(await read('/api/me')).toMatchObject({ spend: { organization: { held: 0 } } })
})

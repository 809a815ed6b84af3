import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fakeEngine, fakeNeeds } from '../_app.ts'
import { startEngine } from '../_engine.ts'
import { full, killsOf } from '../_full.ts'
import { lastingPort, metric, openHome, percentile, type Server, say, until } from './_home.ts'

/** The jobs acknowledged meanwhile have to be completed at the end. */
const kills = killsOf(6, 20)
const slots = 8
const submitters = 12

/** A reproducible sequence of numbers from 0 to 1. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** The job of a key: short work on the engine, whose length is derived from the key. */
const jobOf = (key: string) => {
  const ms = 10 + (createHash('sha256').update(key).digest()[0]! % 32)
  const messages = [{ role: 'user', content: `mode:slow,ms=${ms}` }]
  return { task: 'std/chat-completion', model_id: 'far', inputs: { messages }, metadata: { key } }
}

test(`${kills} kill -9 under load: no job is lost or invented, each is billed once`, {
  timeout: 180_000 + kills * 3_000,
}, async () => {
  await using engine = await startEngine()
  await using home = openHome()
  home.configure({ models: [{ id: 'far', engine: 'remote', url: `${engine.url}/v1`, concurrency: slots }] })
  const random = seeded(20_260_401)
  const port = await lastingPort()
  const url = `http://127.0.0.1:${port}`
  const start = () => home.serve(['--listen', `127.0.0.1:${port}`])

  const acknowledged = new Map<string, string>()
  const contradictions: string[] = []
  const surprises = new Set<string>()
  let replayed = 0
  const over = new AbortController()

  /** One client: sends the next key after an acknowledgement, the same key again after any failure. */
  async function submitter(name: number): Promise<void> {
    for (let n = 0; !over.signal.aborted; n++) {
      const key = `${name}:${n}`
      while (!acknowledged.has(key)) if (!(await submit(key))) await delay(10 + random() * 30)
    }
  }

  async function submit(key: string): Promise<boolean> {
    try {
      const answer = await fetch(`${url}/api/jobs`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${home.secret()}`,
          'content-type': 'application/json',
          'idempotency-key': key,
        },
        body: JSON.stringify(jobOf(key)),
      })
      const body = (await answer.json()) as { id: string }
      if (answer.status !== 202) {
        // While it starts the server answers 503; any other status is a fault.
        if (answer.status !== 503) surprises.add(`${answer.status} ${JSON.stringify(body)}`)
        return false
      }
      if (answer.headers.get('idempotent-replayed') === 'true') replayed++
      if ((acknowledged.get(key) ?? body.id) !== body.id) contradictions.push(key)
      acknowledged.set(key, body.id)
      return true
    } catch {
      return false
    }
  }

  let server = start()
  await server.ready
  const clients = Array.from({ length: submitters }, (_, name) => submitter(name))
  const readyMs: number[] = []
  let requeued = 0
  for (let round = 0; round < kills; round++) {
    if (round % 3 === 2) {
      // Killed during its start, when it repairs what the last kill left.
      await delay(random() * 250)
    } else {
      // Killed after some more work, so that every run makes progress, and then at a random time.
      await server.ready
      const wanted = { acknowledged: acknowledged.size + random() * 60, finished: 24 + random() * 76 }
      const { finished } = await engine.stats()
      await until('work between two kills', async () => {
        if (acknowledged.size < wanted.acknowledged) return false
        return (await engine.stats()).finished >= finished + wanted.finished
      })
      await delay(random() * 40)
    }
    server.kill('SIGKILL')
    await server.ended
    const began = performance.now()
    server = start()
    const here = server
    void here.ready.then(
      async () => {
        await fetch(`${url}/readyz`)
        readyMs.push(performance.now() - began)
        requeued += Number(/"requeued":(\d+)/.exec(here.err())?.[1] ?? 0)
      },
      () => {},
    )
  }
  await server.ready
  over.abort()
  await Promise.all(clients)

  // Compares what the clients know with what the server knows.
  const ids = [...acknowledged.values()]
  const unfinished = async () =>
    (await metric(server, 'infer_jobs', 'pending')) + (await metric(server, 'infer_jobs', 'processing'))
  await until('all jobs ended', async () => (await unfinished()) === 0, 40_000 + kills * 1_000)
  const wrong: string[] = []
  for (const [key, id] of acknowledged) {
    const job = (await (await server.fetch(`/api/jobs/${id}`)).json()) as {
      status?: string
      metadata?: { key: string }
    }
    if (job.status !== 'completed' || job.metadata?.key !== key) wrong.push(`${key} ${id}: ${JSON.stringify(job)}`)
  }
  expect({ wrong, contradictions, surprises: [...surprises] }).toEqual({ wrong: [], contradictions: [], surprises: [] })
  expect(new Set(ids).size).toBe(ids.length)
  expect(await metric(server, 'infer_jobs')).toBe(ids.length)
  expect(await metric(server, 'infer_ledger_rows_total')).toBe(ids.length)
  const executions = (await engine.stats()).requests
  expect(executions).toBeGreaterThanOrEqual(ids.length)
  expect(executions).toBeLessThanOrEqual(ids.length + slots * kills)

  // A key repeated many kills later is still the same job; with another body it is refused.
  const [key, id] = [...acknowledged][0]!
  const again = await server.fetch('/api/jobs', { body: jobOf(key), headers: { 'idempotency-key': key } })
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true'])
  expect(await again.json()).toMatchObject({ id })
  const other = await server.fetch('/api/jobs', {
    body: { ...jobOf(key), priority: 'high' },
    headers: { 'idempotency-key': key },
  })
  expect(other.status).toBe(422)

  const checked = await home.run(['db', 'check', '--json'])
  expect(JSON.parse(checked.out)).toMatchObject({ whole: true, jobs: ids.length, ledger_rows: ids.length })
  server.kill('SIGTERM')
  expect(await server.ended).toEqual({ code: 0, signal: null })

  // Proves that the load was real: work was running at the kills, and answers were lost.
  expect(requeued).toBeGreaterThan(0)
  expect(readyMs.length).toBeGreaterThanOrEqual(kills - Math.floor(kills / 3))
  expect(Math.max(...readyMs)).toBeLessThan(15_000)
  say(
    `durability: ${kills} kills, ${ids.length} acknowledged, 0 lost, ${executions - ids.length} executions repeated, ` +
      `${requeued} requeued, ${replayed} submissions replayed; ready after a kill p50 ` +
      `${Math.round(percentile(readyMs, 50))} ms, p99 ${Math.round(percentile(readyMs, 99))} ms`,
  )
})

/** How long engines may outlive a killed server here, milliseconds. */
const adoptGrace = 1_000

test('a killed server leaves no engine and no grandchild behind', async context => {
  await using home = openHome()
  const command = [process.execPath, fakeEngine, '--port', '{port}', '--grandchild', '--ignore-term']
  const limits = { adopt_grace: adoptGrace }
  home.configure({
    limits,
    models: [{ id: 'mine', engine: 'custom', ...fakeNeeds, command, devices: 'cpu', memory: '16MiB' }],
  })
  const { out } = await home.run(['doctor', '--json'])
  const wrapper = (JSON.parse(out) as { findings: { name: string; state: string; detail: string }[] }).findings.find(
    ({ name }) => name === 'engine wrapper',
  )
  if (wrapper?.state !== 'fine') context.skip(`Engines cannot be wrapped on this machine: ${wrapper?.detail}`)

  const left: number[] = []
  const goneMs: number[] = []
  for (let round = 0; round < (full ? 6 : 3); round++) {
    const server: Server = home.serve()
    await server.ready
    const body = { model: 'mine', messages: [{ role: 'user', content: 'mode:silent' }] }
    const hangs = server.fetch('/std/v1/chat/completions', { body }).catch(() => {})
    // The server, the engine and its grandchild, besides their wrappers.
    await until('an engine at work', async () => (await metric(server, 'infer_leases')) > 0)
    const before = home.processes()
    expect(before).toContain(server.pid)
    expect(before.length).toBeGreaterThanOrEqual(3)
    const killed = performance.now()
    server.kill('SIGKILL')
    let now = home.processes()
    while (now.length > 0 && performance.now() - killed < adoptGrace + 2_000) {
      await delay(5)
      now = home.processes()
    }
    goneMs.push(performance.now() - killed)
    left.push(now.length)
    await Promise.all([hangs, server.ended])
  }
  expect(left).toEqual(left.map(() => 0))
  say(
    `orphans: ${left.length} kills, 0 survivors, the last process gone after at most ${Math.round(Math.max(...goneMs))} ms`,
  )
})

import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { openAsIs } from '../../../core/store/sqlite/database.ts'
import { sendSignal } from '../../../gpu/launcher/processes.ts'
import { fakeModel } from '../../_app.ts'
import { serve } from '../../cli/_serve.ts'
import { lastingPort } from '../../e2e/_home.ts'
import { endSurvivors, fakeEngine, survivors, temporary } from './_launch.ts'
import { openLoad } from './_load.ts'

/** Milliseconds that a replacement may take besides the load. */
const replacementMs = 3_000
const load = { rate: Number(process.env.INFER_TEST_RATE ?? 200), streams: Number(process.env.INFER_TEST_STREAMS ?? 20) }

interface EngineStatus {
  id: string
  state: string
}

export interface KillsOptions {
  /** Settings of the pool that the engine runs in, if not this machine. */
  pool?: object
  /** Environment of the server. */
  env?: Record<string, string>
  /** Further settings of the model. */
  model?: object
}

/** Runs a real server with one engine under load, and says what each fault did to it. */
export async function underLoad({ pool, env = {}, model = {} }: KillsOptions = {}) {
  const dataDir = temporary()
  const port = await lastingPort()
  const engine = fakeModel('loaded', ['--ready-after', '500'], {
    command: [process.execPath, fakeEngine, '--socket', '{socket}', '--ready-after', '500'],
    concurrency: 64,
    // Not the whole repository, which would be compared with that of another machine at each start.
    sandbox_read: [dirname(fakeEngine)],
    // What comes during the longest replacement at the highest rate.
    max_queue: 10_000,
    ...(pool && { pools: ['far'] }),
    ...model,
  })
  const limits = { min_free_disk: '1MiB', ballast: '1MiB' }
  const config = { listen: `127.0.0.1:${port}`, limits, ...(pool && { pools: { far: pool } }), models: [engine] }
  writeFileSync(join(dataDir, 'infer.yaml'), stringify(config))
  let server = await serve(dataDir, [], env)
  const url = `http://127.0.0.1:${port}`
  const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  const headers = { authorization: `Bearer ${secret}` }
  const started = new Set<string>()
  onTestFinished(async () => {
    for (const id of started) await endSurvivors(`${id}-1`)
  })

  /** The engine that serves, if there is one. */
  async function readyEngine(): Promise<string | undefined> {
    const answer = await fetch(`${url}/api/system/status`, { headers }).catch(() => undefined)
    if (!answer?.ok) return undefined
    const { engines } = (await answer.json()) as { engines: EngineStatus[] }
    for (const { id } of engines) started.add(id)
    return engines.find(({ state }) => state === 'ready')?.id
  }
  async function ready(holds: (id: string) => boolean): Promise<string> {
    const deadline = performance.now() + 60_000
    for (;;) {
      const id = await readyEngine()
      if (id !== undefined && holds(id)) return id
      const { exitCode, signalCode } = server.child
      const hasEnded = exitCode !== null || signalCode !== null
      if (hasEnded || performance.now() > deadline) throw new Error(`No engine: ${server.stderr().slice(-4_000)}`)
      await delay(20)
    }
  }
  /** Milliseconds that the log says of the start of an engine. */
  function loadMsOf(id: string): number {
    const line = server
      .stderr()
      .split('\n')
      .find(one => one.includes('Engine ready') && one.includes(id))
    const fields = JSON.parse(line ?? '{}') as { load_ms?: number; queue_ms?: number }
    return (fields.load_ms ?? Number.NaN) + (fields.queue_ms ?? 0)
  }

  // So that the load does not wait for the first load of the model.
  const first = { model: 'loaded', messages: [{ role: 'user', content: 'Hello' }] }
  const answer = await fetch(`${url}/std/v1/chat/completions`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(first),
  })
  expect(answer.status, await answer.text()).toBe(200)
  const running = openLoad({ url, secret, model: 'loaded', ...load })
  onTestFinished(async () => {
    await running.end()
  })
  await running.answersAgain()
  const lines: string[] = []

  /** Waits until the load is steady, and reports what happened in a fault. */
  async function fault(name: string, run: (before: string) => Promise<string>): Promise<void> {
    await running.answersAgain(true)
    const before = await ready(() => true)
    const { outcomes } = running
    const [sent, cut, streams] = [outcomes.sent, outcomes.cut, { ...outcomes.streams }]
    outcomes.slowest = 0
    const said = await run(before)
    await running.answersAgain()
    lines.push(
      `${name}: ${said}; ${outcomes.sent - sent} chats, slowest ${Math.round(outcomes.slowest)} ms, ` +
        `${outcomes.cut - cut} cut with the server, streams: ${outcomes.streams.errorEvent - streams.errorEvent} error events, ` +
        `${outcomes.streams.silent - streams.silent} silent`,
    )
  }

  return {
    /** The processes of an engine: its wrapper is not among them. */
    processesOf: (engineId: string) => survivors(`${engineId}-1`),
    /** Something ends the engine: another one must serve soon. */
    replaced: (name: string, kill: (engineId: string) => Promise<void>) =>
      fault(name, async before => {
        const begun = performance.now()
        await kill(before)
        const id = await ready(one => one !== before)
        const [ms, loadMs] = [Math.round(performance.now() - begun), loadMsOf(id)]
        expect.soft(ms - loadMs, name).toBeLessThanOrEqual(replacementMs)
        return `replaced after ${ms} ms, of which ${loadMs} ms were the load`
      }),
    /** Something fails that the engine survives. */
    kept: (name: string, kill: (engineId: string) => Promise<void>) =>
      fault(name, async before => {
        const begun = performance.now()
        await kill(before)
        await running.answersAgain()
        const ms = Math.round(performance.now() - begun)
        expect.soft(await ready(() => true), name).toBe(before)
        return `answers after ${ms} ms, by the same engine`
      }),
    /** The server is killed and started again. */
    restarted: (name: string) =>
      fault(name, async before => {
        const begun = performance.now()
        sendSignal(server.child.pid!, 'SIGKILL')
        await once(server.child, 'exit')
        server = await serve(dataDir, [], env)
        await running.answersAgain()
        const ms = Math.round(performance.now() - begun)
        expect.soft(await ready(() => true), name).toBe(before)
        const reloads = server.stderr().split('Engine ready').length - 1
        expect.soft(reloads, 'reloads').toBe(0)
        return `answers after ${ms} ms, ${reloads} reloads`
      }),
    /** Ends the load and the server, and checks that nothing was lost, nothing done twice, and nothing failed. */
    async finish(): Promise<void> {
      const perSecond = await running.end()
      const { outcomes, acknowledged } = running
      const database = openAsIs(join(dataDir, 'infer.db'), { readonly: true })
      onTestFinished(() => void database.close())
      const unfinished = database.prepare("SELECT count(*) FROM jobs WHERE status IN ('pending', 'processing')").pluck()
      await expect.poll(() => unfinished.get(), { timeout: 60_000 }).toBe(0)
      server.child.kill('SIGTERM')
      expect(await server.ends()).toBe(0)
      const billed = database.prepare("SELECT job_id FROM ledger WHERE kind = 'async'").pluck().all() as string[]
      const ids = new Set(acknowledged.values())
      const lost = [...ids].filter(id => !billed.includes(id)).length
      const twice = billed.length - new Set(billed).size + (new Set(billed).size - ids.size)
      const statuses = database.prepare("SELECT DISTINCT status FROM ledger WHERE kind = 'async'").pluck().all()
      process.stdout.write(
        `${lines.join('\n')}\n${perSecond} chats a second: ${JSON.stringify(outcomes)}; ${ids.size} jobs acknowledged, ${lost} lost, ${twice} double, ${String(statuses)}\n`,
      )
      expect.soft({ lost, twice, statuses }).toEqual({ lost: 0, twice: 0, statuses: ['completed'] })
      expect.soft(outcomes.failed).toEqual({})
    },
  }
}

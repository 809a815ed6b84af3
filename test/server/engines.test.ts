import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { engineProcess } from './_process.ts'

/** Faults of engines, as seen by a client: none of them is ever a 500, and other requests are not affected. */
let app: TestApp
let stopPulse: () => Promise<{ statuses: Set<number>; longest: number; count: number }>

const one = { replicas: { min: 0, max: 1 } }
beforeAll(async () => {
  const raceFolder = mkdtempSync(join(tmpdir(), 'infer-test-'))
  app = await startApp({
    limits: { engine_backoff: '100ms', order_bound: 0 },
    models: [
      fakeModel('calm', [], { replicas: { min: 1, max: 1 } }),
      fakeModel('dead', ['--exit', '3']),
      fakeModel('dead-job', ['--exit', '3']),
      fakeModel('dead-impatient', ['--exit', '3'], { dispatch_wait_ms: '150ms' }),
      fakeModel('killed', ['--id', 'killed']),
      fakeModel('poisoned', ['--id', 'poisoned']),
      fakeModel('shared', [], { concurrency: 16 }),
      fakeModel('frozen', ['--id', 'frozen'], { no_progress: '2s' }),
      fakeModel('hung', ['--hang'], { load_timeout: '400ms' }),
      fakeModel('unresponsive', ['--unresponsive'], { no_progress: '300ms' }),
      fakeModel('slow-load', ['--ready-after', '60000'], { dispatch_wait_ms: '200ms' }),
      fakeModel('narrow', [], { concurrency: 1, max_queue: 1 }),
      fakeModel('hurried', [], { concurrency: 1, dispatch_wait_ms: '300ms', replicas: { min: 1, max: 1 } }),
      fakeModel('huge', [], { memory: '900TiB' }),
      fakeModel('raced', ['--port-race', join(raceFolder, 'race')], { sandbox_write: [raceFolder] }),
      fakeModel('missing', [], { command: ['/no/such/program', '--port', '{port}'] }),
    ],
  })
  expect((await ask('calm')).status).toBe(200)
  stopPulse = pulse()
})
afterAll(async () => {
  const { statuses, longest, count } = await stopPulse()
  process.stdout.write(`meanwhile ${count} requests to another model, the longest ${Math.round(longest)} ms\n`)
  await app[Symbol.asyncDispose]()
  expect([...statuses]).toEqual([200])
  expect(count).toBeGreaterThan(50)
})

interface Work {
  id: string
  status: string
  error?: { message: string }
  request_counts?: object
}

const seen = new Map<number, number>()
async function ask(model: string, said = 'Hello', more: object = {}) {
  const response = await app.fetch('/std/v1/chat/completions', {
    body: { model, messages: [{ role: 'user', content: said }], ...more },
  })
  seen.set(response.status, (seen.get(response.status) ?? 0) + 1)
  const { headers, status } = response
  const text = await response.text()
  const { error } = (headers.get('content-type') === 'application/json' ? JSON.parse(text) : {}) as {
    error?: { code: string; message: string; retry_after?: number }
  }
  return { status, headers, text, code: error?.code, message: error?.message ?? '', error }
}

/** A client of another model that sends requests one after another until it is stopped. */
function pulse() {
  const statuses = new Set<number>()
  let longest = 0
  let count = 0
  const stop = new AbortController()
  const done = (async () => {
    while (!stop.signal.aborted) {
      const from = performance.now()
      statuses.add((await ask('calm')).status)
      longest = Math.max(longest, performance.now() - from)
      count++
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  })()
  return async () => {
    stop.abort()
    await done
    return { statuses, longest, count }
  }
}

interface Activity {
  model_id: string
  status: string
  reason: string | null
  queue_depth: number
}
async function activity(model: string): Promise<Activity> {
  const { models } = (await (await app.fetch('/api/model-status')).json()) as { models: Activity[] }
  return models.find(({ model_id }) => model_id === model)!
}
async function starts(model: string): Promise<number> {
  const text = await (await app.fetch('/metrics')).text()
  return Number(new RegExp(`^infer_engine_starts_total\\{model="${model}"\\} (\\d+)`, 'm').exec(text)![1])
}
/** Says when to retry, in seconds and in milliseconds, and that a retry is useful. */
function saysWhen({ headers, error, status }: Awaited<ReturnType<typeof ask>>): void {
  expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(Number(headers.get('retry-after-ms'))).toBeGreaterThanOrEqual(1)
  expect(error!.retry_after).toBe(Number(headers.get('retry-after')))
  if (error!.code === 'no_capacity') {
    expect(error!.retry_after).toBeGreaterThanOrEqual(10)
    expect(error!.retry_after).toBeLessThanOrEqual(30)
  }
  if (status === 503) expect(headers.get('x-should-retry')).toBe('true')
}
const lastError = 'out of memory'

describe('an engine that exits at its start', () => {
  test('is reported with its last output, five times; then at once, without a start, until the pause is over', async () => {
    for (let time = 0; time < 5; time++) {
      const failed = await ask('dead')
      expect([failed.status, failed.code]).toEqual([503, 'no_capacity'])
      expect(failed.message).toContain('Engine exited (3)')
      expect(failed.message).toContain(lastError)
      saysWhen(failed)
    }
    expect(await starts('dead')).toBe(5)
    const told = await ask('dead')
    expect([told.status, told.code]).toEqual([503, 'no_capacity'])
    expect(told.message).toContain(lastError)
    saysWhen(told)
    expect(await starts('dead')).toBe(5)
    expect(await activity('dead')).toMatchObject({ status: 'unavailable', reason: expect.stringContaining(lastError) })
    await expect.poll(async () => (await ask('dead'), starts('dead')), { interval: 200 }).toBe(6)
  })

  test('a caller with a short wait gets 503, and when to retry', async () => {
    const codes = new Set<string | undefined>()
    await expect
      .poll(
        async () => {
          const refused = await ask('dead-impatient')
          expect(refused.status).toBe(503)
          saysWhen(refused)
          codes.add(refused.code)
          return refused.code
        },
        { timeout: 40_000, interval: 20 },
      )
      .toBe('no_capacity')
    for (const code of codes) expect(['model_warming_up', 'no_capacity']).toContain(code)
  })

  test('a job waits for it, uncharged, with the reason, and can be cancelled', async () => {
    const made = await app.fetch('/api/jobs', {
      body: { task: 'std/embeddings', model_id: 'dead-job', inputs: { input: 'a' } },
    })
    const { id } = (await made.json()) as { id: string }
    const look = async () =>
      (await (await app.fetch(`/api/jobs/${id}`)).json()) as {
        status: string
        attempts: number
        waiting_for: { reason: string; detail: string } | null
      }
    // Past the fifth failure the pauses between starts grow, and the job still waits.
    await expect.poll(() => starts('dead-job'), { timeout: 50_000, interval: 200 }).toBeGreaterThanOrEqual(5)
    const job = await look()
    expect(job).toMatchObject({ status: 'pending', attempts: 0, waiting_for: { reason: 'engine_failing' } })
    expect(job.waiting_for!.detail).toContain(lastError)
    const cancelled = await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
    expect(await cancelled.json()).toMatchObject({ status: 'cancelled', waiting_for: null })
  })

  test('a missing program is named', async () => {
    const failed = await ask('missing')
    expect([failed.status, failed.code]).toEqual([503, 'no_capacity'])
    expect(failed.message).toContain("The program 'program' that runs 'missing' is not installed here")
  })
})

describe('an engine that crashes', () => {
  test('during a request: the request is tried again on a new one, and answered', async () => {
    const asked = ask('killed', 'mode:slow,ms=1500')
    const engine = await engineProcess('killed')
    await expect.poll(async () => (await engine.stats().catch(() => undefined))?.running).toBe(1)
    process.kill(engine.pid, 'SIGSEGV')
    const { status, text } = await asked
    expect(status, text).toBe(200)
    expect(await starts('killed')).toBe(2)
    expect((await engineProcess('killed')).pid).not.toBe(engine.pid)
  })

  test('on every such request: after three engines the caller gets the exit status', async () => {
    const failed = await ask('poisoned', 'mode:segfault')
    expect([failed.status, failed.code]).toEqual([502, 'worker_error'])
    expect(failed.message).toContain('SIGSEGV')
    expect(await starts('poisoned')).toBe(3)
    expect((await ask('poisoned')).status).toBe(200)
  })

  test('for two of ten requests in flight: those two fail with the reason, the other eight are answered', async () => {
    const chat = (said: string) => ({ model: 'shared', messages: [{ role: 'user', content: said }] })
    const [calm, crasher] = ['mode:slow,ms=400', 'mode:segfault,ms=200']
    // Ready before, so that all of them are in flight at once.
    expect((await ask('shared')).status).toBe(200)
    const run = async (path: string, body: object): Promise<Work> => {
      const made = await app.fetch(path, { body })
      const workOf = async (response: Response) => {
        const answer = (await response.json()) as Work & { execution?: Work }
        expect(response.ok, JSON.stringify(answer)).toBe(true)
        return answer.execution ?? answer
      }
      const { id } = await workOf(made)
      const of = `${path.replace('/workflows/run', '/workflow-executions')}/${id}`
      let work: Work
      const ended = async () => (work = await workOf(await app.fetch(of))).status
      await expect.poll(ended, { timeout: 60_000 }).toMatch(/^(completed|failed|cancelled)$/)
      return work!
    }
    const job = (said: string) => ({ task: 'std/chat-completion', model_id: 'shared', inputs: chat(said) })
    const dag = { nodes: { one: job(calm) } }
    const lines = ['a', 'b'].map(custom_id =>
      JSON.stringify({ custom_id, method: 'POST', url: '/v1/chat/completions', body: chat(calm) }),
    )
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new Blob([lines.join('\n')]), 'in.jsonl')
    const uploaded = await fetch(`${app.url}/std/v1/files`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${app.secret}` },
    })
    const file = (await uploaded.json()) as { id: string }
    const batch = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const [chats, works, lot, crashing, crashed] = await Promise.all([
      Promise.all([ask('shared', calm), ask('shared', calm)]),
      Promise.all([
        ...[1, 2].map(() => run('/api/jobs', job(calm))),
        ...[1, 2].map(() => run('/api/workflows/run', { dag })),
      ]),
      run('/std/v1/batches', batch),
      ask('shared', crasher),
      run('/api/jobs', job(crasher)),
    ])
    expect(chats.map(({ status }) => status)).toEqual([200, 200])
    expect(works.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 'completed'))
    expect(lot.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect([crashing.status, crashing.message]).toEqual([502, expect.stringContaining('SIGSEGV')])
    expect([crashed.status, crashed.error?.message]).toEqual(['failed', expect.stringContaining('SIGSEGV')])
  })

  test('during a stream: the output so far is delivered, an error frame ends it, and the next request works', async () => {
    const broken = await ask('killed', 'mode:crash,after=4', { stream: true })
    expect(broken.status).toBe(200)
    const frames = broken.text.split('\n\n').filter(frame => frame.startsWith('data: '))
    expect(frames.length).toBeGreaterThan(1)
    expect(broken.text).not.toContain('[DONE]')
    const { error } = JSON.parse(frames.at(-1)!.slice(6)) as { error: { code: string; message: string } }
    expect(error.code).toBe('worker_error')
    expect(error.message).toContain(lastError)
    expect((await ask('killed')).status).toBe(200)
  })

  test('while idle: the next request gets a new one', async () => {
    expect((await ask('killed')).status).toBe(200)
    const before = await starts('killed')
    process.kill((await engineProcess('killed')).pid, 'SIGKILL')
    await expect.poll(async () => (await activity('killed')).status).toBe('cold')
    expect((await activity('killed')).reason).toContain('SIGKILL')
    expect((await ask('killed')).status).toBe(200)
    expect(await starts('killed')).toBe(before + 1)
  })
})

describe('an engine that hangs', () => {
  test('on a request: it is killed, the caller gets an error, the next request is served', async () => {
    const failed = await ask('frozen', 'mode:freeze')
    expect([failed.status, failed.code]).toEqual([504, 'timeout'])
    expect(failed.message).toContain('no progress')
    const served = await ask('frozen')
    expect(served.status, served.text).toBe(200)
  })

  test('during a stream: the stream ends with an error frame', async () => {
    const response = await app.fetch('/std/v1/chat/completions', {
      body: {
        model: 'frozen',
        stream: true,
        messages: [{ role: 'user', content: 'mode:stream,tokens=100000,rate=50' }],
      },
    })
    expect(response.status).toBe(200)
    process.kill((await engineProcess('frozen')).pid, 'SIGSTOP')
    const text = await response.text()
    expect(text).toContain('"role":"assistant"')
    expect(text).toContain('no progress')
    expect(text).toContain('"code":"timeout"')
    expect(text).not.toContain('[DONE]')
    expect((await ask('frozen')).status).toBe(200)
  })

  test.each([
    ['hung in its load', 'hung', 503, 'no_capacity', /no progress in loading for 400 ms/],
    ['healthy but unresponsive', 'unresponsive', 504, 'timeout', /no progress/],
  ])('%s: %s answers %i with the reason', async (_, model, status, code, reason) => {
    const failed = await ask(model)
    expect([failed.status, failed.code], failed.text).toEqual([status, code])
    expect(failed.message).toMatch(reason)
  })
})

describe('an engine that is not ready, or busy', () => {
  test('still loading when the wait ends: 503 model_warming_up', async () => {
    const cold = await ask('slow-load')
    expect([cold.status, cold.code]).toEqual([503, 'model_warming_up'])
    saysWhen(cold)
    expect((await activity('slow-load')).status).toBe('loading')
    // The load continues; the next request does not start it again.
    expect((await ask('slow-load')).code).toBe('model_warming_up')
    expect(await starts('slow-load')).toBe(1)
  })

  test('all slots taken and the queue full: 429 queue_full; queued requests are served', async () => {
    expect((await ask('narrow')).status).toBe(200)
    const working = ask('narrow', 'mode:slow,ms=1500')
    // In parallel, the first of these two takes the only place in the queue.
    await expect.poll(async () => (await running('narrow')) > 0).toBe(true)
    const queued = ask('narrow')
    await expect.poll(async () => (await activity('narrow')).queue_depth).toBe(1)
    const refused = await ask('narrow')
    expect([refused.status, refused.code]).toEqual([429, 'queue_full'])
    expect(refused.message).toContain('max_queue')
    saysWhen(refused)
    expect([(await working).status, (await queued).status]).toEqual([200, 200])
  })

  test('all slots taken until the wait ends: 503 no_capacity', async () => {
    await expect.poll(async () => (await activity('hurried')).status).toBe('warm')
    const working = ask('hurried', 'mode:slow,ms=2000')
    await expect.poll(async () => (await running('hurried')) > 0).toBe(true)
    const refused = await ask('hurried')
    expect([refused.status, refused.code]).toEqual([503, 'no_capacity'])
    expect(refused.message).toContain('slots')
    saysWhen(refused)
    expect((await working).status).toBe(200)
  })

  test('too large for this machine: 503 with this reason', async () => {
    const refused = await ask('huge')
    expect([refused.status, refused.code]).toEqual([503, 'no_capacity'])
    expect(refused.message).toMatch(/'huge' needs [\d.]+ GiB of memory; .* has is [\d.]+ [GM]iB/)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(refused.headers.get('retry-after')).toBeNull()
    expect(refused.headers.get('retry-after-ms')).toBeNull()
    expect(refused.error).not.toHaveProperty('retry_after')
  })

  test('whose port another program took first: it is started again, and answers', async () => {
    expect((await ask('raced')).status).toBe(200)
  })
})

async function running(model: string): Promise<number> {
  const text = await (await app.fetch('/metrics')).text()
  return Number(new RegExp(`^infer_leases\\{.*model="${model}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0)
}

describe('two models, and memory for one', () => {
  test('each waits for the other, neither is killed during its work, both are answered', async () => {
    const total = Number(
      /infer_device_memory_bytes\{device="cpu",kind="total"\} (\d+)/.exec(
        await (await app.fetch('/metrics')).text(),
      )![1],
    )
    const memory = Math.floor(total * 0.6)
    await using crowded = await startApp({
      limits: { order_bound: 0 },
      models: ['left', 'right'].map(id =>
        fakeModel(id, ['--id', `crowded-${id}`, ...(id === 'left' ? ['--ignore-term'] : [])], {
          ...one,
          memory,
          stop_grace: '300ms',
        }),
      ),
    })
    const to = async (model: string, said = 'Hello') => {
      const response = await crowded.fetch('/std/v1/chat/completions', {
        body: { model, messages: [{ role: 'user', content: said }] },
      })
      const { headers } = response
      // What the order of arrival would have cost it is known of each that waited.
      expect(headers.has('x-reference-queue-ms') || headers.get('x-queue-ms') === '0').toBe(true)
      return [response.status, headers.get('x-model-status'), (await response.text()).includes('fake engine')]
    }
    expect(await to('left')).toEqual([200, 'cold', true])
    expect(await to('left')).toEqual([200, 'warm', true])
    const working = to('left', 'mode:slow,ms=1500')
    expect(await to('right')).toEqual([200, 'cold', true])
    expect(await working).toEqual([200, 'warm', true])
    // Both under load: each is served although the other always has requests.
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, at) => to(at % 2 ? 'left' : 'right', 'mode:slow,ms=100')),
    )
    expect(answers.map(([status]) => status)).toEqual(Array.from({ length: 24 }, () => 200))
    const text = await (await crowded.fetch('/metrics')).text()
    const loads = [...text.matchAll(/^infer_engine_starts_total\{model="\w+"\} (\d+)/gm)].map(([, count]) =>
      Number(count),
    )
    process.stdout.write(`24 requests for two models with room for one: ${loads.join(' and ')} loads in all\n`)
    expect(Math.max(...loads)).toBeLessThanOrEqual(4)
  })
})

test('none of these tests saw a 500', () => {
  process.stdout.write(`answers by status: ${JSON.stringify(Object.fromEntries(seen))}\n`)
  expect([...seen.keys()].filter(status => ![200, 429, 502, 503, 504].includes(status))).toEqual([])
})

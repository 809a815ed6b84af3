import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'
import { openReader } from '../../_sse.ts'

let app: TestApp
let engine: ScriptedEngine
const held = new Map<string, ServerResponse>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input ?? seen.body.messages?.[0]?.content)
    if (said.startsWith('hold')) {
      held.set(said, response)
      if (seen.body.stream) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return
    }
    if (said.startsWith('400')) return badly(response, 400, 'not like this')
    if (said.startsWith('long')) {
      const content = 'x'.repeat(60_000)
      const body = { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] }
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    well(seen, response)
  })
  app = await startApp({
    models: [engine.model('far')],
    limits: { stream_ping: '200ms', write_deadline: '1s' },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

async function submit(input: string, more: object = {}): Promise<string> {
  const body = { task: 'std/embeddings', model_id: 'far', inputs: { input }, ...more }
  const made = await app.fetch('/api/jobs', { body })
  expect(made.status).toBe(202)
  return ((await made.json()) as { id: string }).id
}
const end = async (id: string) => (await (await app.fetch(`/api/jobs/${id}?wait=60`)).json()) as { status: string }
/** Releases a held job once it has reached the engine. */
async function letGo(said: string) {
  await engine.until(() => held.has(said))
  well({ path: '/v1/embeddings', body: { input: said } } as never, held.get(said)!)
}
const numberOf = (id: string | undefined) => Number(id!.slice('evt_'.length))
const streams = async () => Number(/^infer_streams (\d+)$/m.exec(await (await app.fetch('/metrics')).text())![1])

describe('the events of a job', () => {
  test('are the snapshot, the changes, and the end, with which the stream ends', async () => {
    const id = await submit('hold one')
    await engine.until(() => held.has('hold one'))
    using reader = await openReader(app, `/api/jobs/${id}/events`)
    expect([reader.status, reader.headers['content-type'], reader.headers['cache-control']]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      'no-cache',
    ])
    await reader.until(() => reader.records.length > 0)
    expect(reader.comments[0]).toBe('retry: 2000')
    await letGo('hold one')
    const [first, ...others] = await reader.whole()
    expect(first).toMatchObject({
      id: expect.stringMatching(/^evt_\d+$/),
      event: 'snapshot',
      data: { type: 'snapshot', data: { job: { id, status: 'processing', attempts: 1 } } },
    })
    expect(others).toEqual([
      {
        id: expect.stringMatching(/^evt_\d+$/),
        event: 'job.completed',
        data: {
          id: others[0]!.id,
          type: 'job.completed',
          timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
          created_at: expect.any(Number),
          data: {
            job_id: id,
            queue_id: id.replace('job_', 'q_'),
            task: 'std/embeddings',
            model_id: 'far',
            slug: null,
            status: 'completed',
            attempt: 1,
            result: expect.objectContaining({ object: 'list' }),
          },
        },
      },
    ])
    expect(numberOf(others[0]!.id)).toBeGreaterThan(numberOf(first!.id))
  })

  test('from the beginning, of an ended job: all of them, and the stream ends', async () => {
    const id = await submit('all')
    await end(id)
    using reader = await openReader(app, `/api/jobs/${id}/events?after=evt_0`)
    const records = await reader.whole()
    expect(records.map(({ event }) => event)).toEqual(['snapshot', 'job.created', 'job.started', 'job.completed'])
    expect(records[0]).toMatchObject({ id: 'evt_0', data: { data: { job: { status: 'completed' } } } })
  })

  test('of an ended job: the snapshot, and the stream ends', async () => {
    const id = await submit('ended')
    await end(id)
    using reader = await openReader(app, `/api/jobs/${id}/events`)
    expect((await reader.whole()).map(({ event }) => event)).toEqual(['snapshot'])
  })

  test('of a failed job give the reason', async () => {
    const id = await submit('400')
    await end(id)
    using reader = await openReader(app, `/api/jobs/${id}/events?after=evt_0`)
    expect((await reader.whole()).at(-1)).toMatchObject({
      event: 'job.failed',
      data: { data: { status: 'failed', error: { code: 'invalid_value', attempt: 1 } } },
    })
  })

  test('report a cancellation', async () => {
    const id = await submit('hold and cancel')
    using reader = await openReader(app, `/api/jobs/${id}/events`)
    await reader.until(() => reader.records.length > 0)
    await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
    expect((await reader.whole()).at(-1)).toMatchObject({ event: 'job.cancelled' })
  })

  test.each<[string, Record<string, string>, string]>([
    ['Last-Event-ID', { 'last-event-id': 'ID' }, ''],
    ['?after=', {}, '?after=ID'],
    ['Last-Event-ID before ?after=', { 'last-event-id': 'ID' }, '?after=evt_0'],
  ])('continue after the last one under %s', async (_, headers, query) => {
    const id = await submit('go on')
    await end(id)
    using first = await openReader(app, `/api/jobs/${id}/events?after=evt_0`)
    const all = await first.whole()
    for (const [at, { id: last }] of all.entries()) {
      if (at === 0) continue
      const filled = Object.fromEntries(Object.entries(headers).map(([name]) => [name, last!]))
      using again = await openReader(app, `/api/jobs/${id}/events${query.replace('ID', last!)}`, filled)
      expect((await again.whole()).slice(1)).toEqual(all.slice(at + 1))
    }
  })

  test.each(['42', 'evt_', 'evt_-1', 'evt_1e3', 'evt_99999999999999999', newId('job')])(
    'after=%s: 400',
    async after => {
      const id = await submit('a')
      for (const path of [`/api/jobs/${id}/events`, '/api/events']) {
        const response = await app.fetch(`${path}?after=${after}`)
        const { error } = (await response.json()) as { error: { param: string } }
        expect([response.status, error.param]).toEqual([400, 'after'])
      }
    },
  )

  test('an id in the future counts as the newest', async () => {
    const id = await submit('future')
    await end(id)
    using reader = await openReader(app, `/api/jobs/${id}/events?after=evt_999999999`)
    const [first] = await reader.whole()
    expect(numberOf(first!.id)).toBeLessThan(999_999_999)
  })

  test('of an unknown job or one of another organization: 404', async () => {
    const other = await makeOrganization(app)
    const id = await submit('mine')
    for (const [path, token] of [
      [`/api/jobs/${newId('job')}/events`, app.secret],
      [`/api/jobs/${id}/events`, other.secret],
    ] as const)
      expect((await app.fetch(path, { token })).status).toBe(404)
  })

  test('of a synchronous call are its snapshot and its end', async () => {
    const response = await app.fetch('/std/v1/chat/completions', {
      body: { model: 'far', messages: [{ role: 'user', content: 'Hello' }] },
    })
    const id = response.headers.get('x-job-id')!
    using ended = await openReader(app, `/api/jobs/${id}/events`)
    expect((await ended.whole()).map(({ event }) => event)).toEqual(['snapshot'])
    const leave = new AbortController()
    const stream = await app.fetch('/std/v1/chat/completions', {
      body: { model: 'far', stream: true, messages: [{ role: 'user', content: 'hold the line' }] },
      signal: leave.signal,
    })
    const running = stream.headers.get('x-job-id')!
    using reader = await openReader(app, `/api/jobs/${running}/events`)
    await reader.until(() => reader.records.length === 1)
    expect(reader.records[0]).toMatchObject({ data: { data: { job: { kind: 'sync', status: 'processing' } } } })
    leave.abort()
    expect((await reader.whole()).at(-1)).toMatchObject({
      event: 'job.cancelled',
      data: { data: { job_id: running, status: 'cancelled' } },
    })
  })
})

describe('the events of an organization', () => {
  test('are of all its jobs, and of no other', async () => {
    const waiting = await submit('hold for all')
    await engine.until(() => held.has('hold for all'))
    using reader = await openReader(app, '/api/events')
    await reader.until(() => reader.records.length > 0)
    const shown = reader.records[0]!.data.data.jobs as { id: string; status: string; inputs?: unknown }[]
    expect(shown.find(({ id }) => id === waiting)).toMatchObject({ status: 'processing' })
    expect(JSON.stringify(shown)).not.toContain('hold for all')
    const other = await makeOrganization(app)
    const theirs = await app.fetch('/api/jobs', {
      token: other.secret,
      body: { task: 'std/embeddings', model_id: 'far', inputs: { input: 'theirs' } },
    })
    const foreign = ((await theirs.json()) as { id: string }).id
    const ids = [await submit('a'), await submit('b')]
    await letGo('hold for all')
    const done = () => reader.records.filter(({ event }) => event === 'job.completed').map(one => one.data.data.job_id)
    await reader.until(() => [...ids, waiting].every(id => done().includes(id)))
    expect(reader.records.some(({ data }) => data.data.job_id === foreign)).toBe(false)
    const numbers = reader.records.map(({ id }) => numberOf(id))
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
  })

  test.each<[string, string[]]>([
    ['job.completed', ['job.completed']],
    ['job.created,job.completed', ['job.created', 'job.completed']],
    ['job.*', ['job.created', 'job.started', 'job.completed']],
    ['*', ['job.created', 'job.started', 'job.completed']],
    ['workflow_execution.*, job.started', ['job.started']],
  ])('of the types %s', async (types, expected) => {
    using reader = await openReader(app, `/api/events?types=${encodeURIComponent(types)}`)
    await reader.until(() => reader.records.length > 0)
    const id = await submit('typed')
    await end(id)
    const last = expected.at(-1)
    await reader.until(() => reader.records.some(({ event, data }) => event === last && data.data.job_id === id))
    expect(reader.records.filter(({ data }) => data.data.job_id === id).map(({ event }) => event)).toEqual(expected)
  })

  test.each(['job.complete', 'job', '', 'job.*.x', 'JOB.*'])('of the type %j: 400', async types => {
    const response = await app.fetch(`/api/events?types=${encodeURIComponent(types)}`)
    const { error } = (await response.json()) as { error: { param: string; message: string } }
    expect([response.status, error.param]).toEqual([400, 'types'])
    expect(error.message).toContain('job.completed')
  })

  test('a reader cut at random places misses no event and has none twice', async () => {
    using start = await openReader(app, '/api/events')
    await start.until(() => start.records.length > 0)
    const from = start.records[0]!.id!
    const seen: { id: string; event: string; job: unknown }[] = []
    const jobs = 120
    let last = from
    let cuts = 0
    const complete = () => seen.filter(({ event }) => event === 'job.completed').length === jobs
    const reading = (async () => {
      while (!complete()) {
        using reader = await openReader(app, '/api/events', { 'last-event-id': last })
        // The snapshot is the first; the reader stops after this many more events.
        const most = 1 + Math.floor(Math.random() * 12)
        await reader.until(() => reader.records.length > most || seen.length + reader.records.length - 1 >= 3 * jobs)
        for (const { id, event, data } of reader.records.slice(1, 1 + most)) {
          seen.push({ id: id!, event: event!, job: data.data.job_id })
          last = id!
        }
        cuts++
      }
    })()
    const ids = new Set<string>()
    for (let at = 0; at < jobs; at += 10)
      for (const id of await Promise.all(Array.from({ length: 10 }, (_, one) => submit(`cut ${at + one}`)))) ids.add(id)
    await reading
    expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
    const numbers = seen.map(({ id }) => numberOf(id))
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    for (const id of ids)
      expect(seen.filter(({ job }) => job === id).map(({ event }) => event)).toEqual([
        'job.created',
        'job.started',
        'job.completed',
      ])
    process.stdout.write(`${seen.length} events over ${cuts} connections\n`)
  })
})

describe('a stream', () => {
  test('is pinged while no event happens', async () => {
    using reader = await openReader(app, '/api/events')
    await reader.until(() => reader.comments.filter(text => text === ': ping').length >= 3)
  })

  test('answers a HEAD request with its headers', async () => {
    const response = await app.fetch('/api/events', { method: 'HEAD' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  })

  test('whose reader disconnects is removed', async () => {
    const before = await streams()
    const readers = await Promise.all(Array.from({ length: 20 }, () => openReader(app, '/api/events')))
    expect(await streams()).toBe(before + 20)
    for (const reader of readers) reader.cut()
    await expect.poll(streams).toBe(before)
  })

  test('whose reader does not read is cut at the deadline, and the missed events are there when it reconnects', async () => {
    using other = await openReader(app, '/api/events')
    await other.until(() => other.records.length > 0)
    const from = other.records[0]!.id!
    const { port } = new URL(app.url)
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    expect((socket.address() as AddressInfo).port).toBeGreaterThan(0)
    socket.write(`GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${app.secret}\r\n\r\n`)
    await once(socket, 'readable')
    socket.pause()
    const before = await streams()
    const messages = [{ role: 'user', content: 'long' }]
    const jobs = 300
    for (let at = 0; at < jobs; at += 20)
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const id = await submit('', { task: 'std/chat-completion', inputs: { messages } })
          await end(id)
        }),
      )
    const closed = once(socket, 'close')
    await expect.poll(streams).toBe(before - 1)
    socket.resume()
    socket.on('error', () => {})
    await closed
    using again = await openReader(app, '/api/events?types=job.completed', { 'last-event-id': from })
    await again.until(() => again.records.length > jobs)
    expect(new Set(again.records.slice(1).map(({ data }) => data.data.job_id)).size).toBe(jobs)
  })

  test('ends when the server stops, with a closing event', async () => {
    await using fresh = await startApp({ models: [engine.model('far')] })
    const readers = await Promise.all([openReader(fresh, '/api/events'), openReader(fresh, '/api/events')])
    await Promise.all(readers.map(reader => reader.until(() => reader.records.length > 0)))
    const from = performance.now()
    await fresh.app.close()
    for (const reader of readers) {
      await reader.until(() => reader.over)
      expect(reader.comments).toContain(': the server is stopping')
    }
    // Without it, stopping would wait two seconds for the open stream.
    expect(performance.now() - from).toBeLessThan(2_000)
  })

  test('is refused at once for a wrong token, and takes no turn of the others', async () => {
    const { hostname, port } = new URL(app.url)
    const answered: string[] = []
    const sockets = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = connect(Number(port), hostname)
        await once(socket, 'connect')
        socket.once('data', (bytes: Buffer) => answered.push(bytes.toString('latin1').split(' ')[1]!))
        return socket
      }),
    )
    await app.fetch('/livez')
    for (const [at, socket] of sockets.entries()) {
      const secret = at === 99 ? 'sk-infer-wrong' : app.secret
      socket.write(`GET /api/events HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${secret}\r\n\r\n`)
    }
    await expect.poll(() => answered.length).toBe(100)
    // Sent last, it would be answered last if it took a turn.
    expect(answered).toContain('401')
    expect(answered.indexOf('401')).toBeLessThan(99)
    for (const socket of sockets) socket.destroy()
  })

  test('is refused with 503 if it waits to be opened when the server stops', async () => {
    await using fresh = await startApp({ models: [engine.model('far')] })
    const { hostname, port } = new URL(fresh.url)
    const sockets = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = connect(Number(port), hostname)
        await once(socket, 'connect')
        return socket
      }),
    )
    // An answered request shows that the server has accepted all earlier connections.
    await fresh.fetch('/livez')
    const answers = Promise.all(sockets.map(socket => text(socket)))
    for (const socket of sockets)
      socket.write(`GET /api/events HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${fresh.secret}\r\n\r\n`)
    await once(sockets[0]!, 'data')
    const from = performance.now()
    await fresh.app.close()
    expect(performance.now() - from).toBeLessThan(1_500)
    const refused = (await answers).filter(answer => !answer.startsWith('HTTP/1.1 200'))
    expect(refused.length).toBeGreaterThan(0)
    for (const answer of refused) expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*shutting_down/)
  })
})

import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { TestApp } from '../_app.ts'
import { openKillable } from './_killable.ts'
import { openScriptedEngine, well } from './_scripted-engine.ts'
import { openReader, type Told } from './_sse.ts'

const kills = 3

test('after repeated kills answered requests are kept, and a follower misses no event and has none twice', {
  timeout: 180_000,
}, async () => {
  await using engine = await openScriptedEngine((seen, response) => void setTimeout(() => well(seen, response), 20))
  await using server = await openKillable([engine.model('far')])
  await server.start()
  const app = { url: server.url, secret: server.secret() } as TestApp
  const send = async (path: string, body: object, key: string) => {
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(body),
    })
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  const requestOf = (key: string): [string, object] =>
    key.startsWith('call')
      ? ['/std/v1/embeddings', { model: 'far', input: key }]
      : ['/api/jobs', { task: 'std/embeddings', model_id: 'far', inputs: { input: key } }]
  const good = (key: string) => (key.startsWith('call') ? 200 : 202)

  const answered = new Map<string, string>()
  const strange: string[] = []
  const over = new AbortController()
  /** The next key after an answer, the same again after a broken connection. */
  const client = async (name: string) => {
    for (let at = 0; !over.signal.aborted; at++) {
      const key = `${at % 4 === 0 ? 'call' : 'job'}-${name}-${at}`
      while (!answered.has(key) && !over.signal.aborted) {
        const answer = await send(...requestOf(key), key).catch(() => undefined)
        if (answer?.status === good(key)) answered.set(key, answer.text)
        else if (answer && ![409, 499, 503].includes(answer.status)) strange.push(`${key}: ${answer.text}`)
        if (!answered.has(key)) await delay(20)
      }
    }
  }
  const told: Told[] = []
  /** Reconnects after every cut, with its last event id. */
  const follow = async () => {
    while (!over.signal.aborted) {
      const last = told.at(-1)?.id ?? 'evt_0'
      const reader = await openReader(app, '/api/events', { 'last-event-id': last }).catch(() => undefined)
      const cut = () => reader?.cut()
      over.signal.addEventListener('abort', cut)
      if (over.signal.aborted) cut()
      await reader?.until(() => reader.over)
      over.signal.removeEventListener('abort', cut)
      // Without the snapshot; the connection may have broken before that.
      told.push(...(reader?.records.slice(1) ?? []))
      await delay(20)
    }
  }

  const following = follow()
  const clients = ['a', 'b', 'c', 'd'].map(client)
  for (let kill = 0; kill < kills; kill++) {
    const enough = answered.size + 40
    await expect.poll(() => answered.size).toBeGreaterThan(enough)
    await server.kill()
    await server.start()
  }
  await expect.poll(() => answered.size).toBeGreaterThan(kills * 40 + 40)
  over.abort()
  await Promise.all(clients)

  expect(strange).toEqual([])
  const ids: string[] = []
  for (const [key, text] of answered) {
    const again = await send(...requestOf(key), key)
    expect([key, again.status, again.headers.get('idempotent-replayed')]).toEqual([key, good(key), 'true'])
    if (key.startsWith('call')) expect(again.text).toBe(text)
    else {
      const { id } = JSON.parse(text) as { id: string }
      expect((JSON.parse(again.text) as { id: string }).id).toBe(id)
      ids.push(id)
    }
  }
  const headers = { authorization: `Bearer ${app.secret}` }
  for (const id of ids) {
    const job = (await (await fetch(`${server.url}/api/jobs/${id}?wait=60`, { headers })).json()) as { status: string }
    expect([id, job.status]).toEqual([id, 'completed'])
  }
  await following
  // The events since it disconnected.
  using rest = await openReader(app, '/api/events', { 'last-event-id': told.at(-1)!.id! })
  const all = () => [...told, ...rest.records.slice(1)]
  const ends = () => new Set(all().flatMap(({ event, data }) => (event === 'job.completed' ? [data.data.job_id] : [])))
  await expect.poll(() => ids.filter(id => !ends().has(id))).toEqual([])
  const numbers = all().map(({ id }) => Number(id!.slice('evt_'.length)))
  expect(numbers).toEqual([...new Set(numbers)].toSorted((one, other) => one - other))
  for (const id of ids) {
    const own = all().filter(({ data }) => data.data.job_id === id)
    expect([own[0]!.event, own.at(-1)!.event]).toEqual(['job.created', 'job.completed'])
    expect(own.filter(({ event }) => event === 'job.created' || event === 'job.completed')).toHaveLength(2)
  }
  process.stdout.write(`${kills} kills, ${answered.size} answers, ${all().length} events: none lost, none twice\n`)
})

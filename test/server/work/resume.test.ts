import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake', [], { replicas: { min: 1, max: 1 } })] })
})
afterAll(() => app[Symbol.asyncDispose]())

/** Asks for a stream of so many tokens a second. */
async function ask(
  { tokens, rate }: { tokens: number; rate: number },
  { prefer = 'resume=30', body = {}, path = '/std/v1/chat/completions' } = {},
) {
  const leaving = new AbortController()
  const content = `mode:stream,tokens=${tokens},rate=${rate}`
  const answer = await app.fetch(path, {
    body: { model: 'fake', stream: true, messages: [{ role: 'user', content }], max_tokens: tokens, ...body },
    headers: { prefer },
    signal: leaving.signal,
  })
  return { answer, leave: () => leaving.abort(), job: answer.headers.get('x-job-id')! }
}

interface Event {
  id: number
  text: string
}
/** The events of a stream, until it ends or `enough` of them are there. */
async function eventsOf(answer: Response, enough = Number.POSITIVE_INFINITY): Promise<Event[]> {
  const events: Event[] = []
  let rest = ''
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + piece).split('\n\n')
    rest = parts.pop()!
    for (const part of parts) {
      const id = Number(/^id: (\d+)$/m.exec(part)?.[1])
      const data = /^data: (.*)$/m.exec(part)?.[1] ?? ''
      const chunk = data.startsWith('{') ? (JSON.parse(data) as { choices?: { delta?: { content?: string } }[] }) : {}
      events.push({ id, text: chunk.choices?.[0]?.delta?.content ?? '' })
    }
    if (events.length >= enough) break
  }
  return events
}
const textOf = (events: readonly Event[]) => events.map(({ text }) => text).join('')
const resume = (job: string, after: number, token?: string) =>
  app.fetch(`/api/jobs/${job}/stream`, {
    headers: { 'last-event-id': String(after) },
    ...(token === undefined ? {} : { token }),
  })
const jobOf = async (id: string) =>
  (await (await app.fetch(`/api/jobs/${id}`)).json()) as { status: string; usage: { output_tokens: number } | null }

test('a stream goes on without its client, and continues after the last event that it has', async () => {
  const whole = await ask({ tokens: 30, rate: 0 })
  expect(whole.answer.headers.get('preference-applied')).toBe('resume=30')
  const expected = await eventsOf(whole.answer)
  const { answer, leave, job } = await ask({ tokens: 30, rate: 60 })
  const before = await eventsOf(answer, 5)
  leave()
  const last = before.at(-1)!.id
  const after = await eventsOf(await resume(job, last))
  expect([...before, ...after].map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
  expect(textOf([...before, ...after])).toBe(textOf(expected))
  // It is kept after its end, and comes from its start.
  expect(textOf(await eventsOf(await resume(job, 0)))).toBe(textOf(expected))
  await expect.poll(() => jobOf(job)).toMatchObject({ status: 'completed', usage: { output_tokens: 30 } })
})

test('streams that were read to their end make room for new ones', async () => {
  for (let at = 0; at < 17; at++) {
    const { answer } = await ask({ tokens: 1, rate: 0 }, { prefer: 'resume=600' })
    expect([at, answer.headers.get('preference-applied')]).toEqual([at, 'resume=600'])
    await eventsOf(answer)
  }
})

test('who does not come back in time has cancelled it', async () => {
  const { answer, leave, job } = await ask({ tokens: 400, rate: 20 }, { prefer: 'resume=1' })
  await eventsOf(answer, 2)
  leave()
  await expect.poll(async () => (await jobOf(job)).status).toBe('cancelled')
  const gone = await resume(job, 2)
  expect(gone.status).toBe(404)
  expect(await gone.text()).toContain('to resume')
})

test('a cancelled stream says so to whoever resumes it', async () => {
  const { answer, leave, job } = await ask({ tokens: 400, rate: 20 })
  await eventsOf(answer, 2)
  leave()
  expect((await app.fetch(`/api/jobs/${job}/cancel`, { method: 'POST' })).status).toBe(200)
  expect(await (await resume(job, 2)).text()).toContain('"code":"cancelled"')
})

test('events of another form have ids too', async () => {
  const { answer } = await ask({ tokens: 5, rate: 0 }, { path: '/anthropic/v1/messages' })
  expect((await answer.text()).match(/^id: \d+$/gm)?.length).toBeGreaterThan(5)
})

test.each([
  ['without the preference', { prefer: 'wait=10' }],
  ['for a request of which nothing may be kept', { body: { store: false } }],
  ['for lines of JSON', { path: '/ollama/api/chat' }],
])('nothing is kept %s', async (_, options) => {
  const { answer, job } = await ask({ tokens: 3, rate: 0 }, options)
  expect(answer.headers.get('preference-applied')).toBeNull()
  expect(await answer.text()).not.toMatch(/^id: /m)
  expect((await resume(job, 0)).status).toBe(404)
})

test('only the token that sent it may resume it, with the id of an event', async () => {
  const { answer, job } = await ask({ tokens: 3, rate: 0 })
  await answer.text()
  const created = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, {
    body: { name: 'other', scopes: ['user:read', 'user:write'] },
  })
  const { secret } = (await created.json()) as { secret: string }
  expect((await resume(job, 0, secret)).status).toBe(404)
  expect((await app.fetch(`/api/jobs/${job}/stream?after=evt_3`)).status).toBe(400)
})

import Replicate, { validateWebhook } from 'replicate'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { openReceiver } from '../_receiver.ts'

/** Replicate's official client, with nothing changed but its base URL. */
let app: TestApp
let client: Replicate
beforeAll(async () => {
  const tasks = ['slug/text-to-image', 'slug/image-to-image', 'slug/text-to-video']
  app = await startApp({
    models: [fakeModel('acme/dream', [], { tasks, concurrency: 2 }), fakeModel('chat')],
    webhooks: { allowed_addresses: ['127.0.0.1'] },
    media: { allowed_addresses: ['127.0.0.1'] },
  })
  client = new Replicate({ auth: app.secret, baseUrl: `${app.url}/replicate/v1` })
})
afterAll(() => app[Symbol.asyncDispose]())

const size = { width: 64, height: 64 }
const slow = { prompt: 'a cat mode:slow,ms=5000,steps=50', ...size }

test.each([
  ['waits in one request', { mode: 'block' as const }],
  ['polls', { mode: 'poll' as const, interval: 50 }],
])('run %s', async (_, wait) => {
  const states: string[] = []
  const input = { prompt: 'a cat', ...size, num_outputs: 2 }
  const output = await client.run('acme/dream', { input, wait }, ({ status }) => states.push(status))
  expect(output).toHaveLength(2)
  const [image] = output as unknown as string[]
  expect((await fetch(image!)).headers.get('content-type')).toBe('image/png')
  expect(states.at(-1)).toBe('succeeded')
})

test('run by version, and the output as a FileOutput of an https address', async () => {
  const { latest_version: version } = await client.models.get('acme', 'dream')
  const secure = new Replicate({
    auth: app.secret,
    baseUrl: `${app.url}/replicate/v1`,
    // The client downloads only https addresses. Stands for a server with TLS.
    fetch: async (url, init) => {
      const answer = await fetch((url as string | URL).toString().replace('https://infer.test', app.url), init)
      if (!answer.headers.get('content-type')?.includes('json')) return answer
      return new Response((await answer.text()).replaceAll(app.url, 'https://infer.test'), answer)
    },
  })
  const output = await secure.run(`acme/dream:${version!.id}`, { input: { prompt: 'a cat', ...size } })
  const [image] = output as unknown as { blob(): Promise<Blob>; url(): URL }[]
  expect(image!.url().host).toBe('infer.test')
  const bytes = Buffer.from(await (await image!.blob()).arrayBuffer())
  expect(bytes.subarray(1, 4).toString()).toBe('PNG')
})

test('create, get, list and cancel', async () => {
  const created = await client.predictions.create({ model: 'acme/dream', input: slow })
  expect(created).toMatchObject({ status: 'starting', model: 'acme/dream', output: null, error: null })
  const canceled = await client.predictions.cancel(created.id)
  expect(canceled.id).toBe(created.id)
  const ended = await client.wait(created, { interval: 50 })
  expect(ended).toMatchObject({ status: 'canceled', input: { prompt: slow.prompt } })
  expect((await client.predictions.cancel(created.id)).status).toBe('canceled')
  const { results } = await client.predictions.list()
  expect(results[0]).toMatchObject({ id: created.id, status: 'canceled' })
})

test('an unfinished prediction is starting after the wait, so that run goes on to poll', async () => {
  const prediction = await client.predictions.create({ model: 'acme/dream', input: slow, wait: 1 })
  expect(prediction.status).toBe('starting')
  await client.predictions.cancel(prediction.id)
})

test('a chat, and its stream', async () => {
  const input = { prompt: 'Hello', system_prompt: 'Be brief.', max_tokens: 20 }
  expect(await client.run('local/chat', { input })).toEqual(['Hello from the fake engine.'])
  const events: string[] = []
  let text = ''
  for await (const event of client.stream('local/chat', { input })) {
    events.push(event.event)
    if (event.event === 'output') text += event.data
  }
  expect([text, events]).toEqual(['Hello from the fake engine.', ['output', 'done']])
})

test('the stream of an image has its logs', async () => {
  const events: { event: string; data: string }[] = []
  for await (const { event, data } of client.stream('acme/dream', {
    input: { prompt: 'a cat mode:slow,ms=600,steps=3', ...size },
  }))
    events.push({ event, data })
  expect(events.map(({ event }) => event).slice(-2)).toEqual(['output', 'done'])
  const logs = events.filter(({ event }) => event === 'logs').map(({ data }) => data)
  expect(logs).toEqual(expect.arrayContaining(['step 1/3', 'step 2/3', 'step 3/3']))
})

test('a stream needs the signature of its address', async () => {
  const { urls } = await client.predictions.create({ model: 'local/chat', input: { prompt: 'Hello' } })
  const { stream } = urls as unknown as { stream: string }
  const other = stream.replace(/q_./, match => (match === 'q_0' ? 'q_1' : 'q_0'))
  for (const url of [
    stream.replace(/sig=./, match => (match === 'sig=a' ? 'sig=b' : 'sig=a')),
    other,
    stream.split('?')[0]!,
  ])
    expect((await fetch(url)).status).toBe(403)
})

test('files are inputs', async () => {
  const pixel = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC',
    'base64',
  )
  const file = await client.files.create(new Blob([pixel], { type: 'image/png' }))
  expect(file).toMatchObject({ content_type: 'image/png', size: pixel.length })
  expect(await client.files.get(file.id)).toEqual(file)
  expect(await client.files.list()).toMatchObject({ previous: null, next: null, results: [file] })
  expect(await client.run('acme/dream', { input: { prompt: 'a dog', image: pixel, ...size } })).toHaveLength(1)
  expect(await client.files.delete(file.id)).toBe(true)
  await expect(client.files.get(file.id)).rejects.toThrow('404')
})

test('webhooks are predictions that validateWebhook accepts', async () => {
  await using receiver = await openReceiver()
  const { key } = await client.webhooks.default.secret.get()
  await client.run('local/chat', {
    input: { prompt: 'Hello' },
    webhook: receiver.url,
    webhook_events_filter: ['completed'],
  })
  const { headers, text, body } = await receiver.next()
  expect(await validateWebhook({ headers, body: text } as never, key)).toBe(true)
  expect(body).toMatchObject({ status: 'succeeded', output: ['Hello from the fake engine.'] })
})

test('a webhook for events that are never sent is refused by name', async () => {
  const wanted = { model: 'local/chat', input: { prompt: 'Hello' }, webhook: 'https://example.com' }
  await expect(client.predictions.create({ ...wanted, webhook_events_filter: ['output', 'logs'] })).rejects.toThrow(
    "'webhook_events_filter' has only 'output' and 'logs'",
  )
})

test('models, versions and the account', async () => {
  const { results } = await client.models.list()
  expect(results.map(({ owner, name }) => `${owner}/${name}`)).toEqual(['acme/dream', 'local/chat'])
  const versions = await client.models.versions.list('acme', 'dream')
  expect(versions).toMatchObject({ results: [{ id: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown }] })
  const [version] = versions.results
  expect(await client.models.versions.get('acme', 'dream', version!.id)).toEqual(version)
  await expect(client.models.versions.get('acme', 'dream', 'f'.repeat(64))).rejects.toThrow('has only the version')
  expect(await client.accounts.current()).toMatchObject({ type: 'organization', username: 'default' })
})

test('errors are read by the client', async () => {
  await expect(client.run('acme/nothing', { input: {} })).rejects.toThrow("There is no model or version 'acme/nothing'")
  await expect(client.run('acme/dream', { input: {} })).rejects.toThrow('prompt')
  await expect(client.predictions.get('q_nope')).rejects.toThrow('404')
})

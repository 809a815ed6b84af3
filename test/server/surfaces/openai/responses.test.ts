import { afterAll, beforeAll, expect, test } from 'vitest'
import { openApp } from '../../../../cli/server/app.ts'
import { newId } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake'), fakeModel('hanging', ['--hang'], { concurrency: 1 })] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Made {
  id: string
  status: string
  error?: { code: string; param: string }
}
const create = async (body: object, token = app.secret): Promise<Made> => {
  const answer = await app.fetch('/std/v1/responses', { body: { model: 'fake', input: 'Hello', ...body }, token })
  return (await answer.json()) as Made
}

test('a response of another organization is answered byte for byte like an absent one', async () => {
  const { secret } = await makeOrganization(app, {})
  const foreign = [(await create({}, secret)).id, (await create({ background: true }, secret)).id]
  const absent = newId('resp')
  const shape = (id: string) =>
    Promise.all(
      [
        ['GET', `/std/v1/responses/${id}`],
        ['GET', `/std/v1/responses/${id}?stream=true`],
        ['GET', `/std/v1/responses/${id}/input_items`],
        ['POST', `/std/v1/responses/${id}/cancel`],
        ['DELETE', `/std/v1/responses/${id}`],
        ['POST', '/std/v1/responses', { model: 'fake', input: 'a', previous_response_id: id }],
        [
          'POST',
          '/std/v1/responses',
          { model: 'fake', input: [{ type: 'item_reference', id: `msg_${id.slice(5)}o0` }] },
        ],
      ].map(async ([method, path, body]) => {
        const answer = await app.fetch(path as string, { method: method as string, ...(body ? { body } : {}) })
        const text = await answer.text()
        return [answer.status, text.replaceAll(id.slice(5), 'ID').replace(/req_\w+/, 'REQ')]
      }),
    )
  const nothing = await shape(absent)
  expect(nothing.map(([status]) => status)).toEqual([404, 404, 404, 404, 404, 400, 404])
  for (const id of foreign) expect(await shape(id)).toEqual(nothing)
  expect((await app.fetch(`/std/v1/responses/${foreign[0]}`, { token: secret })).status).toBe(200)
})

test('a response in the background is cancelled with its job, and deleted while it runs', async () => {
  const one = await create({ model: 'hanging', background: true })
  const two = await create({ model: 'hanging', background: true })
  expect(['queued', 'in_progress']).toContain(one.status)
  const cancelled = (await (await app.fetch(`/std/v1/responses/${one.id}/cancel`, { method: 'POST' })).json()) as Made
  expect(cancelled.status).toBe('cancelled')
  const job = (await (await app.fetch(`/api/jobs/job_${one.id.slice(5)}`)).json()) as Made
  expect(job.status).toBe('cancelled')
  expect((await app.fetch(`/std/v1/responses/${two.id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await app.fetch(`/api/jobs/job_${two.id.slice(5)}`)).status).toBe(410)
})

test('a large response is read, paged and continued like a small one, in a thread', async () => {
  const input = Array.from({ length: 30 }, (_, at) => ({ role: 'user', content: `${at} ${'word '.repeat(8_000)}` }))
  const { id } = await create({ input })
  const stored = (await (await app.fetch(`/std/v1/responses/${id}`)).json()) as Made
  expect(stored).toMatchObject({ id, status: 'completed' })
  interface Page {
    data: { id: string; content: { text: string }[] }[]
    last_id: string
    has_more: boolean
    error?: { code: string; param: string }
  }
  const page = async (query: string) =>
    (await (await app.fetch(`/std/v1/responses/${id}/input_items?order=asc&limit=20${query}`)).json()) as Page
  const first = await page('')
  expect([first.data.length, first.has_more, first.data[0]!.content[0]!.text.slice(0, 6)]).toEqual([20, true, '0 word'])
  const second = await page(`&after=${first.last_id}`)
  expect([second.data.length, second.has_more, second.data[0]!.content[0]!.text.slice(0, 7)]).toEqual([
    10,
    false,
    '20 word',
  ])
  expect((await page('&after=msg_none')).error).toMatchObject({ code: 'invalid_value', param: 'after' })
  const next = (await create({ previous_response_id: id })) as Made & { usage: { input_tokens: number } }
  expect(next.usage.input_tokens).toBeGreaterThan(30 * 8_000)
  const refused = await create({ previous_response_id: id, background: true, model: 'hanging' })
  expect(refused.error ?? refused).toMatchObject({ code: 'payload_too_large', param: 'previous_response_id' })
})

test('a request with an Idempotency-Key makes one response in the background', async () => {
  const ask = async () =>
    (await (
      await app.fetch('/std/v1/responses', {
        body: { model: 'fake', input: 'Hello', background: true },
        headers: { 'idempotency-key': 'once' },
      })
    ).json()) as Made
  expect((await ask()).id).toBe((await ask()).id)
})

test('stored responses and those in the background survive a restart', async () => {
  await using first = await startApp({ models: [fakeModel('fake'), fakeModel('slow', ['--delay', '1500'])] })
  const post = async (body: object) =>
    (await (
      await first.fetch('/std/v1/responses', { body: { model: 'fake', input: 'Hello', ...body } })
    ).json()) as Made
  const stored = await post({})
  const background = await post({ model: 'slow', background: true })
  await first.app.close()
  const { dataDir, configPath, secret } = first
  const log = openLog('error', () => {})
  const again = await openApp({ dataDir, configPath, listen: '127.0.0.1:0', drainTimeoutMs: 2_000, log })
  try {
    const get = async (id: string, query = '') =>
      fetch(`${again.url}/std/v1/responses/${id}${query}`, { headers: { authorization: `Bearer ${secret}` } })
    expect(await (await get(stored.id)).json()).toEqual(stored)
    const events = await (await get(background.id, '?stream=true')).text()
    expect(events).toContain('event: response.completed')
    expect(await (await get(background.id)).json()).toMatchObject({ id: background.id, status: 'completed' })
  } finally {
    await again.close()
  }
})

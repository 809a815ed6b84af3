import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { chromium, openPages, type Pages } from '../_browser.ts'

/** What a web page of another origin can do with the API, in a real browser. */
describe.skipIf(chromium === undefined)('in a browser', () => {
  let pages: Pages
  let app: TestApp
  beforeAll(async () => {
    pages = await openPages()
    app = await startApp({ models: [fakeModel('fake')], cors: { origins: [pages.origin] } })
  })
  afterAll(async () => {
    await app[Symbol.asyncDispose]()
    await pages[Symbol.asyncDispose]()
  })

  const input = () => ({ api: app.url, secret: app.secret })
  /** A request that needs a preflight, as official clients send it from a page. */
  const helpers = `
    const headers = { authorization: 'Bearer ' + input.secret, 'content-type': 'application/json', 'x-stainless-lang': 'js' }
    const body = more => JSON.stringify({ model: 'fake', messages: [{ role: 'user', content: 'Hi' }], ...more })
    const chat = more => fetch(input.api + '/std/v1/chat/completions', { method: 'POST', headers, body: body(more) })
    const failure = promise => promise.then(response => response.status, error => error.name)
  `

  test('a page of an origin in cors.origins chats, reads streams and headers, and receives errors', async () => {
    const script = `${helpers}
      const whole = await chat({})
      const stream = await (await chat({ stream: true })).text()
      const refused = await fetch(input.api + '/api/me', { headers: { authorization: 'Bearer sk-wrong' } })
      const removed = await fetch(input.api + '/api/jobs/job_none', { method: 'DELETE', headers })
      return {
        status: whole.status,
        content: (await whole.json()).choices[0].message.content,
        request: whole.headers.get('x-request-id'),
        streamed: stream.includes('data: [DONE]'),
        refused: [refused.status, (await refused.json()).error.code],
        removed: removed.status,
        metrics: await failure(fetch(input.api + '/metrics')),
      }`
    expect(await pages.run(pages.origin, script, input())).toEqual({
      status: 200,
      content: expect.stringContaining('Hello') as string,
      request: expect.stringMatching(/^req_/) as string,
      streamed: true,
      refused: [401, 'invalid_api_key'],
      removed: 404,
      metrics: 'TypeError',
    })
  })

  test('a page of any other origin reads nothing but signed addresses of files', async () => {
    const initiated = await app.fetch('/fal/rest/storage/upload/initiate?storage_type=fal-cdn-v3', {
      body: { content_type: 'text/plain', file_name: 'a.txt' },
    })
    const { upload_url, file_url } = (await initiated.json()) as { upload_url: string; file_url: string }
    expect((await fetch(upload_url, { method: 'PUT', body: 'stored' })).status).toBe(200)
    const script = `${helpers}
      return {
        chat: await failure(chat({})),
        models: await failure(fetch(input.api + '/std/v1/models', { headers })),
        file: await (await fetch(input.file)).text(),
      }`
    const other = pages.origin.replace('127.0.0.1', 'localhost')
    expect(await pages.run(other, script, { ...input(), file: file_url })).toEqual({
      chat: 'TypeError',
      models: 'TypeError',
      file: 'stored',
    })
  })
})

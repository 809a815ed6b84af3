import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from './_scripted-engine.ts'

/** What is kept of calls: what they used, and nothing of what was written and answered. */

/** Words that no other file has. */
const canary = (of: string) => `canary-${of}-7f3a9c`
const answered = canary('answer')

let app: TestApp
let engine: ScriptedEngine
beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const asked = JSON.stringify(seen.body)
    if (asked.includes(canary('refused'))) return badly(response, 400, `The engine cannot do ${canary('reason')}.`)
    if (seen.path.endsWith('/chat/completions') && seen.body.stream !== true) {
      const message = { role: 'assistant', content: answered }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(
        JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }),
      )
    }
    well(seen, response)
  })
  app = await startApp({ models: [engine.model('far')] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

/** The files of the data directory that contain the text, however it could be written. */
function filesWith(text: string): string[] {
  const bytes = Buffer.from(text)
  const forms = [bytes, Buffer.from(bytes.toString('hex')), Buffer.from(text, 'utf16le')]
  return readdirSync(app.dataDir, { recursive: true, withFileTypes: true }).flatMap(entry => {
    if (!entry.isFile()) return []
    const content = readFileSync(join(entry.parentPath, entry.name))
    return forms.some(form => content.includes(form)) ? [entry.name] : []
  })
}

test('nothing that a call says or is answered is in the data directory, the list or the log; the inputs of a background job are', async () => {
  const chat = (of: string, more: object = {}) =>
    app.fetch('/std/v1/chat/completions', {
      body: { model: 'far', messages: [{ role: 'user', content: canary(of) }], ...more },
    })
  const whole = await chat('chat')
  expect(await whole.text()).toContain(answered)
  expect(await (await chat('stream', { stream: true })).text()).toContain('[DONE]')
  expect((await chat('refused')).status).toBeGreaterThanOrEqual(400)
  const embedded = await app.fetch('/std/v1/embeddings', { body: { model: 'far', input: canary('embeddings') } })
  expect(embedded.status).toBe(200)
  const responses = { model: 'far', input: canary('response'), store: false }
  expect(await (await app.fetch('/std/v1/responses', { body: responses })).text()).toContain(answered)
  const inputs = { messages: [{ role: 'user', content: canary('job') }] }
  const job = await app.fetch('/api/jobs', { body: { task: 'std/chat-completion', model_id: 'far', inputs } })
  const { id } = (await job.json()) as { id: string }
  await app.fetch(`/api/jobs/${id}?wait=30`)
  // The records of the calls are in the store, so that what is not there now never comes.
  await expect
    .poll(async () => {
      const page = (await (await app.fetch('/api/jobs?kind=sync')).json()) as { jobs: object[] }
      return page.jobs.length
    })
    .toBe(5)

  expect(filesWith(canary('job'))).not.toEqual([])
  const said = ['chat', 'stream', 'refused', 'embeddings', 'response'].map(canary)
  for (const text of said) expect([text, filesWith(text)]).toEqual([text, []])
  const listed = await (await app.fetch('/api/jobs')).text()
  for (const text of [...said, answered]) expect(listed).not.toContain(text)
  expect(listed).toContain(canary('job'))
  for (const text of [...said, answered]) expect(app.lines.join('\n')).not.toContain(text)
})

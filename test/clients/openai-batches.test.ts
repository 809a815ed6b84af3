import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { putFile } from '../_batch-file.ts'

let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

test('smoke', async () => {
  const lines = Array.from({ length: 300 }, (_, at) =>
    JSON.stringify({
      custom_id: `r${at}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model: 'fake', messages: [{ role: 'user', content: `hi ${at}` }] },
    }),
  )
  const input_file_id = putFile(app.dataDir, app.organizationId, lines.join('\n'))
  const batch = await client.batches.create({
    input_file_id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  })
  console.log(batch)
  for (;;) {
    const now = await client.batches.retrieve(batch.id)
    console.log(now.status, now.request_counts, now.errors?.data)
    if (['completed', 'failed', 'cancelled', 'expired'].includes(now.status)) {
      console.log(now)
      break
    }
    await new Promise(r => setTimeout(r, 500))
  }
}, 30000)

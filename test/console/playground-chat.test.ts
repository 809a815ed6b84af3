import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, type TestConsole } from './_console.ts'

/** Conversations with a model that thinks, calls tools, sees, and can be stopped: an engine whose answers the test writes. */
interface Asked {
  stream?: boolean
  messages: { role: string; content: unknown; tool_call_id?: string }[]
  tools?: object[]
  temperature?: number
}
const asked: Asked[] = []
let silent = 0
const gone = Promise.withResolvers<void>()
const secondPart = Promise.withResolvers<void>()

function answer({ messages }: Asked, response: ServerResponse): void {
  const event = (delta: object, finish: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    )
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const last = JSON.stringify(messages.at(-1)!.content)
  if (last.includes('for ever')) {
    event({ role: 'assistant', content: 'It never ends' })
    silent++
    response.on('close', () => gone.resolve())
    return
  }
  if (last.includes('in two parts')) {
    event({ role: 'assistant', content: 'The first part, ' })
    return void secondPart.promise.then(() => {
      event({ content: 'and the second.' }, 'stop')
      response.end('data: [DONE]\n\n')
    })
  }
  if (last.includes('weather')) {
    event({ role: 'assistant', reasoning_content: 'A tool knows this.' })
    event({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }] })
    event({ tool_calls: [{ index: 0, function: { arguments: '{"city":"Oslo"}' } }] }, 'tool_calls')
  } else event({ role: 'assistant', content: `You said ${last}` }, 'stop')
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  response.end(
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage })}\n\ndata: [DONE]\n\n`,
  )
}
const engine = createServer((request, response) => {
  if (request.method !== 'POST')
    return void response.end(JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] }))
  void json(request).then(body => {
    asked.push(body as Asked)
    answer(body as Asked, response)
  })
})

let console: TestConsole
beforeAll(async () => {
  await once(engine.listen(0, '127.0.0.1'), 'listening')
  const { port } = engine.address() as AddressInfo
  const model = (id: string) => ({
    id,
    engine: 'remote',
    url: `http://127.0.0.1:${port}/v1`,
    upstream_id: 'm',
    tasks: ['std/chat-completion'],
    features: ['tools', 'images'],
    price: { input_per_million_tokens: 1_000, output_per_million_tokens: 2_000 },
  })
  console = await openConsole({ models: [model('thinker'), model('other')] })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  engine.closeAllConnections()
  engine.close()
})

test('reasoning is folded, a called tool is answered by the person, and the answer says its cost', async () => {
  await using opened = await console.open('/playground?model=thinker')
  const { page } = opened
  await page.getByText('Parameters and tools').click()
  await page.getByLabel('Tools').fill('[{"type":"function","function":{"name":"weather"}}]')
  await page.getByRole('spinbutton', { name: 'Temperature' }).fill('0.5')
  await page.getByRole('textbox', { name: 'Message' }).fill('What is the weather in Oslo?')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Calls weather').waitFor()
  expect(await page.getByText('A tool knows this.').isVisible()).toBe(false)
  await page.getByText('Reasoning', { exact: true }).click()
  await page.getByText('A tool knows this.').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('playground-tools')
  await page.getByLabel('Result of weather').fill('Rain')
  await page.getByRole('button', { name: 'Send result' }).click()
  await page.getByText('You said "Rain"').waitFor()
  await page.getByText('3 tokens in · 2 tokens out', { exact: false }).last().waitFor()
  await page.getByText('cost 0.007 ', { exact: false }).first().waitFor()
  expect(asked.at(-1)).toMatchObject({ temperature: 0.5, tools: [{ type: 'function', function: { name: 'weather' } }] })
  expect(asked.at(-1)!.messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'call_1', content: 'Rain' })
})

test('an answer is stopped, also at the engine, and two models answer side by side', async () => {
  await using opened = await console.open('/playground?model=thinker')
  const { page } = opened
  const message = page.getByRole('textbox', { name: 'Message' })
  await message.fill('Count for ever')
  await message.press('Enter')
  await page.getByText('It never ends').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped.').waitFor()
  await gone.promise
  expect(silent).toBe(1)
  await page.getByRole('button', { name: 'Clear conversation' }).click()
  await opened.choose('Compare with', 'other')
  await message.fill('Hello')
  await message.press('Enter')
  for (const name of ['thinker', 'other']) await page.getByRole('log', { name }).getByText('You said "Hello"').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('playground-compare-chat')
})

test('an answer goes on where the connection was lost', async () => {
  await using opened = await console.open('/playground?model=thinker')
  const { page } = opened
  opened.expectErrors(/ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET/)
  const message = page.getByRole('textbox', { name: 'Message' })
  const answered = page.waitForResponse(response => response.url().endsWith('/chat/completions'))
  await message.fill('Answer in two parts')
  await message.press('Enter')
  const job = (await answered).headers()['x-job-id']
  await page.getByText('The first part,').waitFor()
  // Another reader with its token ends the connection of the page, as a network does.
  const resumed = page.waitForRequest(request => request.url().endsWith(`/api/jobs/${job}/stream`))
  const other = await console.server.fetch(`/api/jobs/${job}/stream`)
  await resumed
  await other.text().catch(() => {})
  secondPart.resolve()
  await page.getByText('The first part, and the second.', { exact: true }).waitFor()
})

test('an image is sent with a message, and a refused request says why', async () => {
  await using opened = await console.open('/playground?model=thinker')
  const { page } = opened
  opened.expectErrors(/400/)
  const image = await sharp({ create: { width: 32, height: 32, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  await page.locator('input[type=file]').setInputFiles({ name: 'red.png', mimeType: 'image/png', buffer: image })
  await page.getByRole('img', { name: 'Image of the message' }).waitFor()
  await page.getByRole('textbox', { name: 'Message' }).fill('What is this?')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('article', { name: 'thinker' }).getByText('You said').waitFor()
  const [part] = asked.at(-1)!.messages.at(-1)!.content as { type: string; image_url: { url: string } }[]
  expect(part).toMatchObject({ type: 'image_url' })
  expect(part!.image_url.url).toMatch(/^data:image\//)
  await page.getByText('Parameters and tools').click()
  await page.getByRole('spinbutton', { name: 'Temperature' }).fill('9')
  await page.getByRole('textbox', { name: 'Message' }).fill('Again')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('alert').getByText('temperature', { exact: false }).waitFor()
  await page.getByRole('button', { name: 'Answer again' }).waitFor()
})

test('a value that cannot be sent is marked until it is changed, whatever happens to the others', async () => {
  await using opened = await console.open('/playground?model=thinker')
  const { page } = opened
  await page.getByText('Parameters and tools').click()
  await page.getByLabel('Tools').fill('[')
  await page.getByLabel('Response format').fill('{')
  await page.getByRole('textbox', { name: 'Message' }).fill('Hello')
  await page.getByRole('button', { name: 'Send' }).click()
  const marks = page.getByText('This is no valid JSON.')
  await expect.poll(() => marks.count()).toBe(2)
  await page.getByLabel('Tools').fill('')
  await expect.poll(() => marks.count()).toBe(1)
  expect(await page.getByLabel('Response format').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Response format').fill('')
  await expect.poll(() => marks.count()).toBe(0)
})

test('a conversation outlives another model, another page, a reload, another tab and its clearing', async () => {
  await using opened = await console.open('/playground?model=thinker')
  const { page, context } = opened
  const send = async (on: Page, words: string) => {
    await on.getByRole('textbox', { name: 'Message' }).fill(words)
    await on.getByRole('button', { name: 'Send' }).click()
  }
  const article = (on: Page, name: string, words: string) =>
    on.getByRole('article', { name, exact: true }).getByText(words)
  await send(page, 'Hello')
  await article(page, 'thinker', 'You said "Hello"').waitFor()
  await opened.choose('Model', 'other')
  await send(page, 'And now')
  await article(page, 'other', 'You said "And now"').waitFor()
  await article(page, 'thinker', 'You said "Hello"').waitFor()
  // The code is the request that was answered.
  const code = await page.getByRole('tabpanel', { name: 'curl' }).innerText()
  const { messages } = JSON.parse(/--data '([\s\S]*)'/.exec(code)![1]!) as Asked
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'Hello'],
    ['assistant', 'You said "Hello"'],
    ['user', 'And now'],
  ])

  const never = page.getByText('It never ends')
  await send(page, 'Count for ever')
  await never.waitFor()
  await page.getByRole('link', { name: 'Models', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
  await page.getByRole('link', { name: 'Playground' }).click()
  await never.waitFor()
  await page.getByText('Stopped.').waitFor()
  await page.getByRole('button', { name: 'Answer again' }).click()
  await page.getByRole('button', { name: 'Stop' }).waitFor()
  await never.waitFor()
  await page.reload()
  await never.waitFor()
  await page.getByText('Stopped.').waitFor()

  const second = await context.newPage()
  await second.goto('/console/playground?model=thinker')
  await second.getByText('It never ends').waitFor()
  await send(second, 'From the second tab')
  await article(second, 'thinker', 'You said "From the second tab"').waitFor()
  await send(page, 'From the first tab')
  await article(page, 'thinker', 'You said "From the first tab"').waitFor()
  for (const [tab, own, others] of [
    [second, 'second', 'first'],
    [page, 'first', 'second'],
  ] as const) {
    await tab.reload()
    await article(tab, 'thinker', `You said "From the ${own} tab"`).waitFor()
    expect(await tab.getByText(`From the ${others} tab`).count()).toBe(0)
  }
  await second.close()
  await page.getByText('Earlier conversations').click()
  await opened.expectAccessible()

  await page.getByRole('button', { name: 'Clear conversation' }).click()
  await page.getByText('Write a message to begin.').waitFor()
  await page.getByRole('button', { name: 'Undo clearing' }).click()
  await article(page, 'thinker', 'You said "From the first tab"').waitFor()
  // What another tab has said is not lost with that tab.
  await page.getByRole('listitem').getByRole('button', { name: 'Hello' }).click()
  await article(page, 'thinker', 'You said "From the second tab"').waitFor()
})

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer, json } from 'node:stream/consumers'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { full } from '../_full.ts'
import { openConsole, seldomOnPhones, sizes, type TestConsole } from './_console.ts'

/** Conversations with a model that thinks, calls tools, sees, and can be stopped: an engine whose answers the test writes. */
interface Asked {
  stream?: boolean
  messages: { role: string; content: unknown; tool_call_id?: string }[]
  tools?: object[]
  temperature?: number
}
const asked: Asked[] = []
let silent = 0
/** Requests whose connection ended before the head of their answer. */
let leftInSilence = 0
const gone = Promise.withResolvers<void>()
/** Ends the answers in two parts that wait. */
const endings: (() => void)[] = []

const markdown = `# A heading

Some *words*, [a page](https://example.com/), [a script](javascript:alert(1)) and <img src=x onerror=alert(1)>

| name | count |
| :-- | --: |
| answer | 42 |

1. one
   - a part
2. two

> A quote

\`\`\`js
const answer = 'yes' // a comment
\`\`\`

![a cat](https://example.com/cat.png)

It costs $5 and not $10, and \\(a^2\\) is:

$$
\\boxed{\\frac{a}{b} \\label{main}}
$$
`

function answer({ messages }: Asked, response: ServerResponse): void {
  const event = (delta: object, finish: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    )
  const last = JSON.stringify(messages.at(-1)!.content)
  if (last.includes('in silence')) {
    response.on('close', () => void (response.headersSent || leftInSilence++))
    endings.push(() => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      event({ role: 'assistant', content: `At last: ${last}` }, 'stop')
      response.end('data: [DONE]\n\n')
    })
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (last.includes('for ever')) {
    event({ role: 'assistant', content: 'It never ends' })
    silent++
    response.on('close', () => gone.resolve())
    return
  }
  if (last.includes('Markdown')) {
    for (let from = 0; from < markdown.length; from += 7) event({ content: markdown.slice(from, from + 7) })
    event({}, 'stop')
  } else if (last.includes('weather')) {
    event({ role: 'assistant', reasoning_content: 'A tool knows this.' })
    event({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }] })
    event({ tool_calls: [{ index: 0, function: { arguments: '{"city":"Oslo"}' } }] }, 'tool_calls')
  } else if (last.includes('in two parts')) {
    event({ role: 'assistant', content: 'The first part, ' })
    endings.push(() => {
      event({ content: 'and the second.' }, 'stop')
      response.end('data: [DONE]\n\n')
    })
    return
  } else event({ role: 'assistant', content: `You said ${last}` }, 'stop')
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  response.end(
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage })}\n\ndata: [DONE]\n\n`,
  )
}
/** Half a second of silence as WAV. */
const silence = (() => {
  const bytes = Buffer.alloc(44 + 8_000)
  bytes.write('RIFF', 0)
  bytes.writeUInt32LE(bytes.length - 8, 4)
  bytes.write('WAVEfmt ', 8)
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(8_000, 24)
  bytes.writeUInt32LE(16_000, 28)
  bytes.writeUInt16LE(2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36)
  bytes.writeUInt32LE(8_000, 40)
  return bytes
})()
/** What the engine was asked to say. */
const spoken: string[] = []
/** Bytes of the recordings that it was asked to transcribe. */
const recordings: number[] = []

const engine = createServer((request, response) => {
  if (request.url?.endsWith('/audio/transcriptions'))
    return void buffer(request).then(({ length }) => {
      recordings.push(length)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ text: 'Dictated words' }))
    })
  if (request.url?.endsWith('/audio/speech'))
    return void json(request).then(body => {
      spoken.push((body as { input: string }).input)
      response.setHeader('content-type', 'audio/wav')
      response.end(silence)
    })
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
  const model = (id: string, ...features: string[]) => ({
    id,
    engine: 'remote',
    url: `http://127.0.0.1:${port}/v1`,
    upstream_id: 'm',
    tasks: ['std/chat-completion'],
    features: ['tools', 'images', ...features],
    price: { input_per_million_tokens: 1_000, output_per_million_tokens: 2_000 },
  })
  const voice = (id: string, task: string) => ({
    id,
    engine: 'remote',
    url: `http://127.0.0.1:${port}/v1`,
    upstream_id: 'm',
    tasks: [task],
  })
  console = await openConsole({
    models: [
      model('thinker', 'audio'),
      model('other'),
      voice('ear', 'std/audio-transcription'),
      voice('mouth', 'std/audio-speech'),
    ],
  })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  engine.closeAllConnections()
  engine.close()
})

test.each(sizes)(
  'on %s a person chats, has the answer written again, and finds the conversation later',
  async (_, size) => {
    await using opened = await console.open('/chat?model=thinker', { size })
    const { page } = opened
    await page.getByRole('button', { name: 'Settings and code' }).locator('visible=true').click()
    await page.getByLabel('System prompt').fill('Be brief.')
    const code = page.getByLabel('curl', { exact: true }).and(page.locator('pre'))
    expect(await code.innerText()).toContain('"content": "Hello, who are you?"')
    await opened.expectAccessible()
    await opened.screenshot('chat-settings')
    await page.getByRole('button', { name: 'Close settings' }).locator('visible=true').click()
    const message = page.getByRole('textbox', { name: 'Message' })
    await message.fill('Who are you?')
    await message.press('Enter')
    const answer = page.getByRole('article', { name: 'thinker' })
    await answer.getByText(/tokens out/).waitFor()
    await opened.expectAccessible()
    await opened.screenshot('chat')
    expect(asked.at(-1)!.messages[0]).toEqual({ role: 'system', content: 'Be brief.' })
    await answer.getByRole('button', { name: 'Answer again with thinker' }).click()
    await answer.getByText('2 of 2').waitFor()
    await page.getByRole('button', { name: 'Rename' }).waitFor()
    await page.goto('/console/chat')
    if (size.width < 768) await page.getByRole('button', { name: 'Show conversations' }).click()
    await opened.expectAccessible()
    await opened.screenshot('chat-list')
    await page.getByRole('link', { name: 'Who are you?' }).first().click()
    await answer.getByText('2 of 2').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  },
)

test('reasoning is folded, a called tool is answered by the person, and the answer says its cost', async () => {
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  await page.getByRole('button', { name: 'Settings and code' }).click()
  await page.getByText('Parameters and tools').click()
  await page.getByLabel('Tools').fill('[{"type":"function","function":{"name":"weather"}}]')
  await page.getByRole('spinbutton', { name: 'Temperature' }).fill('0.5')
  await page.getByRole('textbox', { name: 'Message' }).fill('What is the weather in Oslo?')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('Calls weather').waitFor()
  expect(await page.getByText('A tool knows this.').isVisible()).toBe(false)
  await page.getByText('Reasoning', { exact: true }).click()
  await page.getByText('A tool knows this.').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('chat-tools')
  await page.getByLabel('Result of weather').fill('Rain')
  await page.getByRole('button', { name: 'Send result' }).click()
  await page.getByText('You said "Rain"').waitFor()
  await page.getByText('3 tokens in · 2 tokens out', { exact: false }).last().waitFor()
  await page.getByText('cost 0.007 ', { exact: false }).first().waitFor()
  expect(asked.at(-1)).toMatchObject({ temperature: 0.5, tools: [{ type: 'function', function: { name: 'weather' } }] })
  expect(asked.at(-1)!.messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'call_1', content: 'Rain' })
})

test('an answer is stopped, also at the engine, and two models answer side by side', async () => {
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  opened.expectErrors(/409/)
  const message = page.getByRole('textbox', { name: 'Message' })
  await message.fill('Count for ever')
  await message.press('Enter')
  await page.getByText('It never ends').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped.').waitFor()
  await gone.promise
  expect(silent).toBe(1)
  await page.getByRole('button', { name: 'Compare' }).click()
  await message.fill('Hello')
  await message.press('Enter')
  for (const name of ['thinker', 'other'])
    await page.getByRole('article', { name }).getByText('You said "Hello"').waitFor()
  await page.getByText('The conversation continues with this answer').waitFor()
  await page.getByRole('button', { name: 'Continue with this answer' }).click()
  await opened.expectAccessible()
  await opened.screenshot('chat-compare')
  await message.fill('Which one?')
  await message.press('Enter')
  await page.getByText('You said "Which one?"').nth(1).waitFor()
  // Both continue with the answer that was chosen, and the other one is a version of it.
  await page.getByText('1 of 2').or(page.getByText('2 of 2')).first().waitFor()

  // Both are stopped too before the heads of their answers have said which jobs they are.
  const [begun, left] = [asked.length, leftInSilence]
  await send(page, 'Think in silence')
  await expect.poll(() => asked.length - begun).toBe(2)
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped.').nth(2).waitFor()
  const newest = async () => (await console.call<{ jobs: { status: string }[] }>('/api/jobs?limit=2')).jobs
  await expect.poll(newest, { timeout: 10_000 }).toMatchObject([{ status: 'cancelled' }, { status: 'cancelled' }])
  await expect.poll(() => leftInSilence - left).toBe(2)
  expect(asked.length - begun).toBe(2)

  // Whoever signs out meanwhile sends nothing more, which would be refused.
  await page.getByRole('button', { name: 'New conversation' }).click()
  await send(page, 'Once more in silence')
  await expect.poll(() => asked.length - begun).toBeGreaterThan(2)
  await opened.signOut()
  await page.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  for (const end of endings.splice(0)) end()
})

test('an answer goes on where the connection was lost, and after its page was left', async () => {
  await using opened = await console.open('/chat?model=thinker')
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
  endings.pop()!()
  const whole = page.getByText('The first part, and the second.', { exact: true })
  await whole.waitFor()

  // The page is reloaded, then closed and opened again: the answer goes on in the tab that shows it.
  await message.fill('Once more in two parts')
  await message.press('Enter')
  const growing = page.getByText('The first part,', { exact: true })
  await growing.waitFor()
  await page.reload()
  await growing.waitFor()
  await page.getByRole('button', { name: 'Stop' }).waitFor()
  const second = await opened.context.newPage()
  const url = page.url()
  await page.close()
  await second.goto(url)
  await second.getByRole('button', { name: 'Stop' }).waitFor()
  endings.pop()!()
  await second.getByText('The first part, and the second.', { exact: true }).nth(1).waitFor()
  await second.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await second.reload()
  await second.getByText('The first part, and the second.', { exact: true }).nth(1).waitFor()
  expect(await second.getByText('Stopped.').count()).toBe(0)
})

test('an answer whose page was left before its head came is taken up, and asked for once', async () => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  await console.call(`/api/organizations/${organization.id}`, { call_storage: 'content' }, 'PATCH')
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  opened.expectErrors(/409/, /ERR_FAILED/)
  const begun = asked.length
  const reached = (times: number) => expect.poll(() => asked.length - begun).toBe(times)
  const found = (code: string) =>
    page.waitForResponse(
      async response =>
        response.url().endsWith('/chat/completions') &&
        ((await response.json()) as { error: { code: string } }).error.code === code,
    )
  await send(page, 'Think in silence')
  await reached(1)
  await page.waitForURL(/conv_/)
  const url = page.url()
  // Reloaded while it runs.
  await Promise.all([found('idempotency_key_in_use'), page.reload()])
  await page.getByRole('button', { name: 'Stop' }).waitFor()
  endings.pop()!()
  await said(page, 'thinker', 'At last: "Think in silence"').waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()

  // Left, and opened again when it has ended.
  await send(page, 'Once more in silence')
  await reached(2)
  await page.goto('about:blank')
  endings.pop()!()
  const [job] = (await console.call<{ jobs: { id: string }[] }>('/api/jobs?limit=1')).jobs
  expect(await console.call(`/api/jobs/${job!.id}?wait=20`)).toMatchObject({ status: 'completed' })
  await Promise.all([found('conflict'), page.goto(url)])
  await said(page, 'thinker', 'At last: "Once more in silence"').waitFor()
  expect(await page.getByText('Stopped.').count()).toBe(0)

  // The connection is lost before the request arrives.
  await page.route('**/chat/completions', route => route.abort(), { times: 1 })
  await send(page, 'Hello again')
  await said(page, 'thinker', 'You said "Hello again"').waitFor()
  await reached(3)
  await page.reload()
  await said(page, 'thinker', 'At last: "Once more in silence"').waitFor()
})

test('files are sent with a message, kept with it, and refused where the model takes none', async () => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  await console.call(`/api/organizations/${organization.id}`, { call_storage: 'content' }, 'PATCH')
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  opened.expectErrors(/400/)
  const image = await sharp({ create: { width: 320, height: 200, channels: 3, background: 'teal' } })
    .png()
    .toBuffer()
  const input = page.locator('input[type=file]')
  await input.setInputFiles([
    { name: 'teal.png', mimeType: 'image/png', buffer: image },
    { name: 'beep.wav', mimeType: 'audio/wav', buffer: Buffer.from('RIFF and more') },
    { name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# Notes') },
    { name: 'twice.md', mimeType: 'text/markdown', buffer: Buffer.from('# Twice') },
    { name: 'a.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7') },
  ])
  await page.getByText('“a.pdf” is neither an image nor audio').waitFor()
  const files = page.getByRole('list', { name: 'Files of the message' })
  await files.getByRole('img', { name: 'teal.png' }).waitFor()
  await files.getByRole('button', { name: 'Remove twice.md' }).click()
  await expect.poll(() => files.getByRole('listitem').count()).toBe(3)
  // A model that is chosen afterwards does not take all of them.
  await opened.choose('Model', 'other')
  await page.getByText('A chosen model takes no audio.').waitFor()
  expect(await page.getByRole('button', { name: 'Send', exact: true }).isEnabled()).toBe(false)
  await opened.expectAccessible()
  await opened.screenshot('chat-files-added')
  await opened.choose('Model', 'thinker')
  await send(page, 'What is this?')
  await said(page, 'thinker', 'You said').waitFor()
  expect(asked.at(-1)!.messages.at(-1)!.content).toEqual([
    { type: 'image_url', image_url: { url: expect.stringMatching(/^data:image\//) } },
    { type: 'input_audio', input_audio: { data: Buffer.from('RIFF and more').toString('base64'), format: 'wav' } },
    { type: 'text', text: 'File notes.md:\n\n# Notes' },
    { type: 'text', text: 'What is this?' },
  ])
  await page.getByRole('button', { name: 'Rename' }).waitFor()
  await page.reload()
  // They come from the server now.
  const sent = page.getByRole('article', { name: 'You' })
  await expect
    .poll(() =>
      sent
        .getByRole('img', { name: 'teal.png' })
        .evaluate(shown => (shown as unknown as { naturalWidth: number }).naturalWidth),
    )
    .toBe(320)
  await sent.getByText('notes.md').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('chat-files')

  // Dropped and pasted files are added too; a model without the feature is named at once.
  await opened.choose('Model', 'other')
  const dataTransfer = await page.evaluateHandle(`(() => {
    const data = new DataTransfer()
    data.items.add(new File(['RIFF'], 'dropped.wav', { type: 'audio/wav' }))
    data.items.add(new File(['Hello'], 'dropped.txt', { type: 'text/plain' }))
    return data
  })()`)
  await page.getByRole('log').dispatchEvent('drop', { dataTransfer })
  await files.getByText('dropped.txt').waitFor()
  await page.getByText('A chosen model takes no audio.').waitFor()
  expect(await files.getByRole('listitem').count()).toBe(1)
  // Two drops at once have no more files than one may have.
  const six = await page.evaluateHandle(`(() => {
    const data = new DataTransfer()
    for (let at = 0; at < 6; at++) data.items.add(new File(['Hello'], 'quick' + at + '.txt', { type: 'text/plain' }))
    return data
  })()`)
  for (let drop = 0; drop < 2; drop++) await page.getByRole('log').dispatchEvent('drop', { dataTransfer: six })
  await page.getByText('A message takes at most 10 files.').waitFor()
  await expect.poll(() => files.locator('li[aria-busy=false]').count()).toBe(10)

  await page.getByRole('button', { name: 'Settings and code' }).click()
  await page.getByText('Parameters and tools').click()
  await page.getByRole('spinbutton', { name: 'Temperature' }).fill('9')
  await send(page, 'Again')
  await page.getByRole('alert').getByText('temperature', { exact: false }).waitFor()
  await page.getByRole('button', { name: 'Answer again with other' }).last().waitFor()
})

test('a value that cannot be sent is marked until it is changed, whatever happens to the others', async () => {
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  await page.getByRole('button', { name: 'Settings and code' }).click()
  await page.getByText('Parameters and tools').click()
  await page.getByLabel('Tools').fill('[')
  await page.getByLabel('Response format').fill('{')
  await page.getByRole('textbox', { name: 'Message' }).fill('Hello')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  const marks = page.getByText('This is no valid JSON.')
  await expect.poll(() => marks.count()).toBe(2)
  await page.getByLabel('Tools').fill('')
  await expect.poll(() => marks.count()).toBe(1)
  expect(await page.getByLabel('Response format').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Response format').fill('')
  await expect.poll(() => marks.count()).toBe(0)
})

const send = async (page: Page, words: string) => {
  await page.getByRole('textbox', { name: 'Message' }).fill(words)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}
const said = (page: Page, name: string, words: string) =>
  page.getByRole('article', { name, exact: true }).getByText(words)

test.each(['browser', 'server'])('a conversation is kept in the %s, with its versions', async place => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const stored = place === 'server' ? 'content' : 'metadata'
  await console.call(`/api/organizations/${organization.id}`, { call_storage: stored }, 'PATCH')
  await using opened = await console.open('/chat?model=thinker')
  const { page, context } = opened
  await page.getByText(place === 'server' ? 'kept on this server' : 'kept in this browser').waitFor()
  await send(page, 'Hello there')
  await said(page, 'thinker', 'You said "Hello there"').waitFor()
  const list = page.getByRole('navigation', { name: 'Conversations' })
  await list.getByRole('link', { name: 'Hello there' }).waitFor()
  await opened.choose('Model', 'other')
  await send(page, 'And now')
  await said(page, 'other', 'You said "And now"').waitFor()

  // Another answer, and another question: each is a version.
  await page.getByRole('button', { name: 'Answer again with other' }).last().click()
  await page.getByText('2 of 2').waitFor()
  await page.getByRole('button', { name: 'Edit message' }).last().click()
  await page.getByRole('textbox', { name: 'Edit message' }).fill('And then')
  await page.keyboard.press('Enter')
  await said(page, 'other', 'You said "And then"').waitFor()
  await page.getByRole('button', { name: 'Version before' }).last().click()
  await said(page, 'other', 'You said "And now"').waitFor()
  await opened.expectAccessible()
  await opened.screenshot(`chat-versions-${place}`)

  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByLabel('Title').fill('Greetings')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await list.getByRole('link', { name: 'Greetings' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Greetings' }).waitFor()
  await said(page, 'other', 'You said "And now"').waitFor()
  await page.getByText('1 of 2').waitFor()

  // Two tabs that go on with one conversation lose nothing: what both have said are versions.
  const second = await context.newPage()
  await second.goto(page.url())
  await said(second, 'other', 'You said "And now"').waitFor()
  for (const [tab, words] of [
    [second, 'From the second tab'],
    [page, 'From the first tab'],
  ] as const) {
    await send(tab, words)
    await said(tab, 'other', `You said "${words}"`).waitFor()
    await tab.getByRole('button', { name: 'Copy answer' }).last().waitFor()
  }
  await list.getByRole('link', { name: 'Greetings' }).waitFor()
  await expect
    .poll(async () => {
      await second.reload()
      await second
        .getByText(/^[12] of 2$/)
        .last()
        .waitFor()
      return second.getByRole('article', { name: 'You' }).last().getByText('2 of 2').count()
    })
    .toBe(1)
  await second.close()

  await page.getByRole('searchbox', { name: 'Search conversations' }).fill('no such words')
  await page.getByText('No conversation has these words').waitFor()
  await page.getByRole('searchbox', { name: 'Search conversations' }).fill('FIRST TAB')
  await list.getByRole('link', { name: 'Greetings' }).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download as Markdown' }).click(),
  ])
  expect(download.suggestedFilename()).toBe('Greetings.md')
  const [exported] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download as JSON' }).click(),
  ])
  const file = JSON.parse(await readFile(await exported.path(), 'utf8')) as { messages: object[] }
  if (place === 'server') {
    const again = await console.call<{ id: string; message_count: number }>('/api/conversations', file)
    expect(again.message_count).toBe(file.messages.length)
    await console.call(`/api/conversations/${again.id}`, undefined, 'DELETE')
  }
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No conversation has these words').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('heading', { level: 1, name: 'Greetings' }).waitFor()
  await said(page, 'other', 'You said "From the first tab"').waitFor()
})

/** Where folders are tried; in the browser too in the whole suite. */
const places = full ? ['server', 'browser'] : ['server']

test.each(places)('conversations in the %s are moved to folders by keyboard and by drag', async place => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const stored = place === 'server' ? 'content' : 'metadata'
  await console.call(`/api/organizations/${organization.id}`, { call_storage: stored }, 'PATCH')
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  const list = page.getByRole('navigation', { name: 'Conversations' })
  const folder = (name: string) => list.getByRole('region', { name: `Folder ${name}` })
  const dialog = page.getByRole('dialog')
  await send(page, 'To be filed')
  await list.getByRole('link', { name: 'To be filed' }).waitFor()
  await list.getByRole('button', { name: 'Move “To be filed” to …' }).press('Enter')
  await dialog.getByLabel('New folder').fill('Presets')
  await page.keyboard.press('Enter')
  await dialog.getByText('is for presets').waitFor()
  await dialog.getByLabel('New folder').fill('Talks')
  await page.keyboard.press('Enter')
  await folder('Talks').getByRole('button', { name: 'Talks', exact: true }).press('Enter')
  await folder('Talks').getByRole('link', { name: 'To be filed' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot(`chat-folders-${place}`)
  await folder('Talks').getByRole('button', { name: 'Rename the folder “Talks”' }).press('Enter')
  await dialog.getByLabel('Name').fill('Words')
  await page.keyboard.press('Enter')
  await folder('Words').getByRole('button', { name: 'Words', exact: true }).press('Enter')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await send(page, 'Alone')
  await list.getByRole('link', { name: 'Alone' }).dragTo(folder('Words'))
  await folder('Words').getByRole('link', { name: 'Alone' }).waitFor()
  await folder('Words').getByRole('button', { name: 'Delete the folder “Words”' }).press('Enter')
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
  await folder('Words').waitFor({ state: 'detached' })
  await list.getByRole('link', { name: 'To be filed' }).waitFor()
})

test.each(['browser', 'server'])('a preset is kept in the %s, chosen, replaced and deleted', async place => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const stored = place === 'server' ? 'content' : 'metadata'
  await console.call(`/api/organizations/${organization.id}`, { call_storage: stored }, 'PATCH')
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  const system = page.getByLabel('System prompt')
  const save = async (name: string) => {
    await page.getByRole('button', { name: 'Save as preset' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill(name)
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
  }
  await page.getByRole('button', { name: 'Settings and code' }).click()
  await system.fill('Answer like a pirate.')
  await page.getByText('Parameters and tools').click()
  const temperature = page.getByRole('spinbutton', { name: 'Temperature' })
  await temperature.fill('0.7')
  await save('Pirate')
  await opened.choose('Preset', 'No preset')
  await expect.poll(() => system.inputValue()).toBe('')
  expect(await temperature.inputValue()).toBe('')

  await page.reload()
  await opened.choose('Preset', 'Pirate')
  await send(page, 'Hello')
  await said(page, 'thinker', 'You said "Hello"').waitFor()
  expect(asked.at(-1)).toMatchObject({
    temperature: 0.7,
    messages: [{ role: 'system', content: 'Answer like a pirate.' }, { role: 'user' }],
  })
  // It is no conversation.
  const list = page.getByRole('navigation', { name: 'Conversations' })
  await list.getByRole('link', { name: 'Hello' }).first().waitFor()
  expect(await list.getByRole('link', { name: 'Pirate' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Settings and code' }).click()
  await system.fill('Answer like a captain.')
  await save('Pirate')
  await opened.expectAccessible()
  await opened.screenshot('chat-preset')
  await opened.choose('Preset', 'No preset')
  await opened.choose('Preset', 'Pirate')
  await expect.poll(() => system.inputValue()).toBe('Answer like a captain.')
  await page.getByRole('button', { name: 'Rename the preset “Pirate”' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('Captain')
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('button', { name: 'Delete the preset “Captain”' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByLabel('Preset', { exact: true }).waitFor({ state: 'detached' })
})

test('an answer goes on while another page is shown, and is still stopped after the tab was reloaded', async () => {
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  const never = page.getByText('It never ends')
  await send(page, 'Count for ever')
  await never.waitFor()
  await page.getByRole('link', { name: 'Models', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
  await page.goBack()
  await never.waitFor()
  await page.getByRole('button', { name: 'Stop' }).waitFor()
  expect(await page.getByText('Stopped.').count()).toBe(0)
  await page.reload()
  await never.waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped.').waitFor()
})

test('Markdown of a model is shown as elements, and nothing in it as HTML', async () => {
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  await send(page, 'Write Markdown')
  const answer = page.getByRole('article', { name: 'thinker' })
  await answer.getByRole('cell', { name: '42' }).waitFor()
  expect(await answer.getByRole('link').allInnerTexts()).toEqual(['a page', 'a cat'])
  expect(await answer.getByRole('link').first().getAttribute('rel')).toContain('noopener')
  await answer.getByText('<img src=x onerror=alert(1)>').waitFor()
  expect(await answer.locator('img, script, iframe').count()).toBe(0)
  await answer.locator('pre span.text-kind-image').first().waitFor()
  await answer.getByRole('button', { name: 'Copy', exact: true }).waitFor()
  await answer.getByText('It costs $5 and not $10').waitFor()
  await answer.getByRole('group', { name: 'Formula' }).locator('math mfrac').waitFor()
  expect(await answer.locator('math').count()).toBe(2)
  expect(await answer.locator('math [id]').count()).toBe(0)
  await opened.expectAccessible()
  await opened.screenshot('chat-markdown')

  // Its words are read aloud, without marks and code.
  await answer.getByRole('button', { name: 'Read aloud' }).click()
  await answer.getByRole('button', { name: 'Stop reading' }).waitFor()
  expect(spoken[0]).toContain('A heading. Some words, a page, a script and')
  expect(spoken[0]).not.toContain('const answer')
  await answer.getByRole('button', { name: 'Read aloud' }).waitFor()
})

test('conversations that the playground kept in this browser are taken over', async () => {
  await using opened = await console.open('/models')
  const { page } = opened
  const { token } = await page.evaluate(async () => {
    const answer = await fetch('/api/session', { headers: { 'x-infer-console': '1' } })
    return (await answer.json()) as { token: { id: string } }
  })
  await page.evaluate(id => {
    const messages = [
      { role: 'user', text: 'From before' },
      { role: 'assistant', text: 'An old answer', model: 'thinker' },
    ]
    const old = { system: 'Be brief.', messages, compared: [], revision: 'x', at: Date.now() }
    localStorage.setItem(`infer.person.playground.${id}.abc`, JSON.stringify(old))
  }, token.id)
  await page.goto('/console/chat')
  await page.getByRole('link', { name: 'From before' }).click()
  await said(page, 'thinker', 'An old answer').waitFor()
})

test('a message is dictated, and a refused microphone is told', async () => {
  await using opened = await console.open('/chat?model=thinker')
  const { page } = opened
  const message = page.getByRole('textbox', { name: 'Message' })
  await message.fill('Before')
  await page.getByRole('button', { name: 'Dictate the message' }).click()
  await page.getByText(/^Recording: [1-9]/).waitFor()
  await opened.expectAccessible()
  await page.getByRole('button', { name: 'Stop recording' }).click()
  await expect.poll(() => message.inputValue()).toBe('Before Dictated words')
  expect(recordings.pop()).toBeGreaterThan(1_000)
  await page.evaluate('navigator.mediaDevices.getUserMedia = () => Promise.reject(new Error("refused"))')
  await page.getByRole('button', { name: 'Dictate the message' }).click()
  await page.getByText('The microphone cannot be used').waitFor()
})

test('a conversation that begins with a job stores the images of it when something is sent, and not before', async () => {
  const image = await sharp({ create: { width: 32, height: 32, channels: 3, background: 'teal' } })
    .png()
    .toBuffer()
  const content = [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${image.toString('base64')}` } },
    { type: 'text', text: 'What is it?' },
  ]
  const inputs = { messages: [{ role: 'user', content }] }
  const { id } = await console.call<{ id: string }>('/api/jobs', {
    task: 'std/chat-completion',
    model: 'thinker',
    inputs,
  })
  await using opened = await console.open(`/chat?job=${id}`)
  const { page } = opened
  const written: string[] = []
  page.on('request', request => {
    const path = new URL(request.url()).pathname
    if (request.method() === 'POST' && /^\/(std|api)\//.test(path)) written.push(path)
  })
  await page.getByRole('img', { name: 'File of the message: image' }).waitFor()
  await page.getByRole('button', { name: 'Settings and code' }).click()
  await page.getByLabel('System prompt').fill('Be brief.')
  await page.getByRole('button', { name: 'Close settings' }).click()
  expect(written).toEqual([])
  await send(page, 'And its colour?')
  await said(page, 'thinker', 'You said "And its colour?"').waitFor()
  expect(written.filter(path => path === '/std/v1/files')).toHaveLength(1)
  expect(written.indexOf('/std/v1/files')).toBeLessThan(written.indexOf('/std/v1/chat/completions'))
  const request = asked.findLast(({ messages }) => messages.at(-1)?.content === 'And its colour?')!
  expect(request.messages[1]!.content).toMatchObject([{ type: 'image_url' }, { type: 'text' }])
})

test.each(seldomOnPhones)(
  'on %s a conversation is read by a link without signing in, until the link is revoked',
  async (_, size) => {
    const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
    await console.call(`/api/organizations/${organization.id}`, { call_storage: 'content' }, 'PATCH')
    await using opened = await console.open('/chat?model=thinker')
    const { page } = opened
    const buffer = await sharp({ create: { width: 320, height: 200, channels: 3, background: 'teal' } })
      .png()
      .toBuffer()
    await page.locator('input[type=file]').setInputFiles([{ name: 'teal.png', mimeType: 'image/png', buffer }])
    await page.getByRole('img', { name: 'teal.png' }).waitFor()
    await send(page, 'Write Markdown')
    await page.getByRole('button', { name: 'Copy answer' }).waitFor()
    await page.getByRole('button', { name: 'Share' }).click()
    const dialog = page.getByRole('dialog', { name: 'Share this conversation' })
    // A browser with a window allows it to the page that is shown.
    await opened.context.grantPermissions(['clipboard-write'])
    await dialog.getByLabel('Expires after').selectOption('1 hour')
    for (let count = 1; count <= 2; count++) {
      await dialog.getByRole('button', { name: 'Create link' }).click()
      await expect.poll(() => dialog.getByRole('listitem').count()).toBe(count)
    }
    await page.getByText('The link was created and copied.').first().waitFor()
    await opened.expectAccessible()
    await opened.screenshot('chat-share')
    const links = await dialog
      .getByRole('link')
      .evaluateAll(all => all.map(one => (one as unknown as { href: string }).href))
    const pathOf = (link: string) => `/..${new URL(link).pathname}`

    await using other = await console.open(pathOf(links[0]!), { size, token: null })
    const { page: shared } = other
    await shared.getByRole('heading', { level: 1, name: 'Write Markdown' }).waitFor()
    const answer = shared.getByRole('article', { name: 'thinker' })
    await answer.getByRole('cell', { name: '42' }).waitFor()
    await answer.locator('math mfrac').waitFor()
    await answer.locator('pre span.text-kind-image').first().waitFor()
    await expect
      .poll(() =>
        shared
          .getByRole('img', { name: 'teal.png' })
          .evaluate(shown => (shown as unknown as { naturalWidth: number }).naturalWidth),
      )
      .toBe(320)
    expect(await shared.getByRole('textbox').count()).toBe(0)
    expect(await shared.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await other.expectAccessible()
    await other.screenshot('shared')

    other.expectErrors(/410/)
    await dialog
      .getByRole('button', { name: /^Revoke the link/ })
      .first()
      .click()
    await expect.poll(() => dialog.getByRole('listitem').count()).toBe(1)
    await shared.reload()
    await shared.getByText('This link was revoked.').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('“Write Markdown” was deleted.').first().waitFor()
    await shared.goto(links[1]!)
    await shared.getByText('The conversation of this link was deleted.').waitFor()
    await other.expectAccessible()
  },
)

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import sharp from 'sharp'
import { root } from '../bundle.ts'

/**
 * Makes the pictures of the console in the README and the guides, and pictures of every page in both themes and both
 * sizes in build/screenshots/pages, for people who look at them: starts the packed executable in an empty folder, uses it,
 * and takes screenshots in Chromium. Prints one line for each picture of the guides, and one for the others.
 */
const output = join(root, 'server/docs/images')
const everyPage = join(root, 'build/screenshots/pages')
const executable = join(root, 'build/infer')
if (!existsSync(executable)) throw new Error('build/infer is missing. Run: npm run pack')
/** Milliseconds in which a page shows its answers. */
const settledMs = 700
const browserPath = ['chromium', 'chromium-browser', 'google-chrome']
  .flatMap(name => (process.env.PATH ?? '').split(':').map(folder => join(folder, name)))
  .find(path => existsSync(path))
if (browserPath === undefined) throw new Error('Chromium is missing. Install it, for example: apt-get install chromium')

const workflow = `name: Illustrated story
description: Writes a story, then paints and reads it.
parameters:
  topic: { type: string, default: a cat that jumps }
dag:
  nodes:
    write:
      task: std/chat-completion
      model_id: infer/tiny-chat
      inputs:
        messages: [{ role: user, content: 'Tell a story about \${input.topic}.' }]
        max_tokens: 24
    paint:
      task: slug/text-to-image
      model_id: infer/demo
      inputs: { prompt: '\${nodes.write.result.choices[0].message.content}', width: 512, height: 512 }
    read:
      task: std/audio-speech
      model_id: infer/tiny-speech
      inputs: { input: '\${nodes.write.result.choices[0].message.content}', voice: alto }
`

const conversationExample = {
  current_id: 'b2',
  messages: [
    { id: 'q1', parent_id: null, role: 'user', text: 'How do I count words in Python?' },
    {
      id: 'a1',
      parent_id: 'q1',
      role: 'assistant',
      model: 'infer/tiny-chat',
      reasoning: 'A Counter does it.',
      text: `## Counting words

Split the text and let a **Counter** do the work:

\`\`\`python
from collections import Counter

def words(text: str) -> Counter:
    # one entry for each word
    return Counter(text.lower().split())
\`\`\`

| Method | Lines | Fast |
| :-- | --: | :-: |
| \`Counter\` | 2 | yes |
| a loop | 5 | yes |

1. Read the file.
2. Split it:
   - by spaces
   - without punctuation

> For large files read line by line.`,
      figures: { totalMs: 2_140, firstMs: 180, inputTokens: 14, outputTokens: 126 },
    },
    { id: 'q2', parent_id: 'a1', role: 'user', text: 'And the ten most common ones?' },
    {
      id: 'b1',
      parent_id: 'q2',
      role: 'assistant',
      model: 'infer/tiny-chat',
      text: 'Use `most_common`.',
    },
    {
      id: 'b2',
      parent_id: 'q2',
      role: 'assistant',
      model: 'infer/tiny-chat',
      text: 'Call `words(text).most_common(10)`; see the [documentation](https://docs.python.org/3/library/collections.html).',
      figures: { totalMs: 900, firstMs: 90, inputTokens: 160, outputTokens: 24 },
    },
  ],
}

const home = mkdtempSync(join(tmpdir(), 'infer-screenshots-'))
const dataDir = join(home, 'data')
mkdirSync(dataDir, { mode: 0o700 })
const server = spawn(executable, ['serve', '--listen', '127.0.0.1:0', '--no-starter'], {
  env: { HOME: home, INFER_DATA_DIR: dataDir, PATH: process.env.PATH ?? '' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  await takeAll(await ready())
} finally {
  await browser.close()
  const ended = once(server, 'exit')
  server.kill()
  await ended
  rmSync(home, { recursive: true, force: true })
}

async function ready(): Promise<string> {
  for await (const line of createInterface({ input: server.stdout })) {
    const url = /^ready (\S+)$/.exec(line)?.[1]
    if (url !== undefined) return url
  }
  throw new Error('The server ended before it was ready.')
}

async function takeAll(url: string): Promise<void> {
  const token = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  const call = async <T>(path: string, body: string | object, type = 'application/json'): Promise<T> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const headers = { authorization: `Bearer ${token}`, 'content-type': type }
    const answer = await fetch(url + path, { method: 'POST', headers, body: text })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  const read = async <T>(path: string): Promise<T> => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  const context = await browser.newContext({
    baseURL: url,
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
  })
  await context.request.post('/api/session', {
    data: { token },
    headers: { 'x-infer-console': '1', 'sec-fetch-site': 'same-origin', origin: url },
  })
  const page = await context.newPage()
  const { parse } = await import('yaml')
  const stored = await call<{ workflow: { id: string } }>('/api/workflows', parse(workflow))
  for (const content of ['What are you?', 'And what can you do?', 'Thank you'])
    await call('/std/v1/chat/completions', { model: 'infer/tiny-chat', messages: [{ role: 'user', content }] })
  for (const prompt of ['a lighthouse at dusk', 'a cat on a roof', 'waves'])
    await call('/api/jobs', {
      task: 'slug/text-to-image',
      model: 'infer/demo',
      inputs: { prompt, width: 512, height: 512 },
    })

  await page.goto(`/console/workflows/${stored.workflow.id}`)
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.getByRole('dialog', { name: 'Run workflow' }).getByRole('button', { name: 'Run now' }).click()
  await page.getByRole('tabpanel', { name: 'Run' }).getByRole('img').first().waitFor({ timeout: 60_000 })
  await page.getByText('Completed').nth(5).waitFor({ timeout: 60_000 })
  await take(page, 'console-workflow')

  await page.goto('/console/')
  await page.getByText('infer/tiny-chat').first().waitFor()
  await page.locator('canvas').first().waitFor()
  await take(page, 'console-overview')

  await page.goto('/console/library')
  await page
    .getByRole('link', { name: /^Open image/ })
    .nth(3)
    .waitFor({ timeout: 60_000 })
  await page.evaluate('Promise.all([...document.images].map(image => image.decode()))')
  await take(page, 'console-library')

  const { organization } = await read<{ organization: { id: string } }>('/api/me')
  await fetch(`${url}/api/organizations/${organization.id}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ call_storage: 'content' }),
  })
  const conversation = await call<{ id: string }>('/api/conversations', conversationExample)
  const { jobs } = await read<{ jobs: { id: string }[] }>('/api/jobs?limit=1&task=slug/text-to-image')
  const { executions } = await read<{ executions: { id: string }[] }>('/api/workflow-executions?limit=1')
  const { webhook } = await call<{ webhook: { id: string } }>('/api/webhooks', {
    name: 'Backend',
    url: 'https://app.example.com/hooks',
    event_types: ['job.completed', 'job.failed'],
    enabled: false,
  })
  const members = `/api/organizations/${organization.id}/members`
  await call(members, { name: 'Ada Lovelace', email: 'ada@example.com', role: 'admin' })
  await call(members, { name: 'Alan Turing', email: 'alan@example.com', role: 'member' })
  const line = (color: string) =>
    JSON.stringify({
      custom_id: color,
      method: 'POST',
      url: '/v1/embeddings',
      body: { model: 'infer/tiny-embed', input: color },
    })
  const inputFile = await call<{ id: string }>('/std/v1/files', {
    url: `data:application/jsonl;base64,${Buffer.from(['red', 'blue'].map(line).join('\n')).toString('base64')}`,
    filename: 'colors.jsonl',
    purpose: 'batch',
  })
  const batch = await call<{ id: string }>('/std/v1/batches', {
    input_file_id: inputFile.id,
    endpoint: '/v1/embeddings',
    completion_window: '24h',
  })
  const state = await context.storageState()
  await takeEveryPage(url, state, {
    'sign-in': '/sign-in',
    overview: '/',
    chat: `/chat/${conversation.id}`,
    'chat-new': '/chat',
    'playground-image': `/playground?job=${jobs[0]!.id}`,
    workflows: '/workflows',
    editor: `/workflows/${stored.workflow.id}`,
    library: '/library',
    jobs: '/jobs',
    job: `/jobs/${jobs[0]!.id}`,
    executions: '/executions',
    execution: `/executions/${executions[0]!.id}`,
    approvals: '/approvals',
    batches: '/batches',
    batch: `/batches?batch=${batch.id}`,
    files: '/files',
    usage: '/usage',
    models: '/models',
    catalog: '/models/catalog',
    model: '/models/details/infer/tiny-chat',
    plan: '/models/details/infer/tiny-chat?part=plan',
    engines: '/engines',
    organizations: '/organizations',
    organization: `/organizations/${organization.id}`,
    users: `/organizations/${organization.id}?part=users`,
    audit: '/audit',
    webhooks: '/webhooks',
    webhook: `/webhooks/${webhook.id}`,
    'webhook-deliveries': '/webhooks/deliveries',
    system: '/system',
    palette: '/?palette',
  })
}

/** Takes each page on a desktop and on a phone, light and dark. The names of two of them say what else is done. */
async function takeEveryPage(
  url: string,
  state: Awaited<ReturnType<BrowserContext['storageState']>>,
  pages: Readonly<Record<string, string>>,
): Promise<void> {
  rmSync(everyPage, { recursive: true, force: true })
  mkdirSync(everyPage, { recursive: true })
  let count = 0
  for (const [width, height] of [
    [1280, 800],
    [390, 844],
  ] as const)
    for (const colorScheme of ['light', 'dark'] as const) {
      const shared = { baseURL: url, viewport: { width, height }, colorScheme, reducedMotion: 'reduce' } as const
      const context = await browser.newContext({ ...shared, storageState: state })
      const stranger = await browser.newContext(shared)
      for (const [name, path] of Object.entries(pages)) {
        const page = await (name === 'sign-in' ? stranger : context).newPage()
        await page.goto(`/console${path}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        if (name === 'palette') {
          await page.keyboard.press('Control+k')
          await page.getByRole('option').nth(12).waitFor()
        }
        // Live pages are never idle: what they show at first is there when their first answers are.
        await page.waitForLoadState('load')
        await page.waitForTimeout(settledMs)
        await page.screenshot({ path: join(everyPage, `${name}-${colorScheme}-${width}.png`) })
        await page.close()
        count++
      }
      await context.close()
      await stranger.close()
    }
  process.stdout.write(`${everyPage.slice(root.length + 1)}: ${count} pictures\n`)
}

async function take(page: Page, name: string): Promise<void> {
  const bytes = await sharp(await page.screenshot())
    .webp({ quality: 82, effort: 6 })
    .toBuffer()
  mkdirSync(output, { recursive: true })
  writeFileSync(join(output, `${name}.webp`), bytes)
  process.stdout.write(`server/docs/images/${name}.webp: ${Math.round(bytes.length / 1_000)} kB\n`)
}

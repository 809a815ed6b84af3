/**
 * Measures what an answer costs that grows in the chat page: an engine streams Markdown with 200 tokens a second into a
 * conversation that has many messages. Script, style and layout on the main thread for each frame that is drawn, in windows of half a
 * second, and the longest task. `npx node test/bench/chat.ts 15`: seconds of the stream. Prints one line.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { openConsole } from '../console/_console.ts'

const seconds = Number(process.argv[2] ?? 15)
const rate = 200
const earlier = 60
const windowMs = 500

/** Markdown as models write it, about 700 tokens. */
const paragraph = `## A step of the plan

The **first** thing is to read \`config.yaml\`, of which [the guide](https://example.com/) says *more*, with $x_1 + x_2 = 3$.

1. Read the file, and keep what it says.
2. Compare both:
   - the one that was written before
   - the one that is there now

| name | before | after |
| :-- | --: | --: |
| width | 12 | 24 |
| height | 8 | 16 |

\`\`\`ts
export function area({ width, height }: Box): number {
  // Both are in pixels.
  return width * height
}
\`\`\`

> It is done when both agree, and not before.

`
const tokens = paragraph.match(/\s*\S{1,4}/g)!

const engine = createServer((request, response) => {
  request.resume()
  if (request.method !== 'POST') return void response.end('{"object":"list","data":[{"id":"m","object":"model"}]}')
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const event = (delta: object, finish_reason: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
    )
  const began = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    const due = Math.min(((performance.now() - began) / 1_000) * rate, seconds * rate)
    for (; sent < due; sent++) event({ content: tokens[sent % tokens.length] })
    if (sent < seconds * rate) return
    clearInterval(timer)
    event({}, 'stop')
    response.end('data: [DONE]\n\n')
  }, 5)
  response.on('close', () => clearInterval(timer))
})
await once(engine.listen(0, '127.0.0.1'), 'listening')
const { port } = engine.address() as AddressInfo

await using console_ = await openConsole({
  models: [
    {
      id: 'writer',
      engine: 'remote',
      url: `http://127.0.0.1:${port}/v1`,
      upstream_id: 'm',
      tasks: ['std/chat-completion'],
    },
  ],
})
const { organization } = await console_.call<{ organization: { id: string } }>('/api/me')
await console_.call(`/api/organizations/${organization.id}`, { call_storage: 'content' }, 'PATCH')
const messages = Array.from({ length: earlier }, (_, at) => ({
  id: `m${at}`,
  parent_id: at === 0 ? null : `m${at - 1}`,
  role: at % 2 === 0 ? 'user' : 'assistant',
  text: at % 2 === 0 ? 'And then?' : paragraph,
  ...(at % 2 === 0 ? {} : { model: 'writer' }),
}))
const { id } = await console_.call<{ id: string }>('/api/conversations', { messages, current_id: `m${earlier - 1}` })

await using opened = await console_.open(`/chat/${id}`)
const { page } = opened
const devtools = await opened.context.newCDPSession(page)
// The time of the thread itself: other programs on the machine do not count.
await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
await page
  .getByRole('article')
  .nth(earlier - 1)
  .waitFor()
await page.evaluate(`globalThis.frames = 0; globalThis.tasks = []
new PerformanceObserver(list => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })
const count = () => { frames++; requestAnimationFrame(count) }
requestAnimationFrame(count)`)
await page.getByRole('textbox', { name: 'Message' }).fill('Go on')
await page.keyboard.press('Enter')
await page.getByRole('button', { name: 'Stop' }).waitFor()

/** Milliseconds of script, style and layout, and frames, since the page began. */
async function snapshot(): Promise<{ busy: number; frames: number }> {
  const { metrics } = await devtools.send('Performance.getMetrics')
  const of = (wanted: string) => metrics.find(({ name }) => name === wanted)!.value * 1_000
  const frames = await page.evaluate<number>('frames')
  return { busy: of('ScriptDuration') + of('RecalcStyleDuration') + of('LayoutDuration'), frames }
}

const perFrame: number[] = []
let before = await snapshot()
const first = before
for (const end = performance.now() + (seconds - 2) * 1_000; performance.now() < end; ) {
  await delay(windowMs)
  const after = await snapshot()
  perFrame.push((after.busy - before.busy) / Math.max(1, after.frames - before.frames))
  before = after
}
const longest = Math.max(0, ...(await page.evaluate<number[]>('tasks')))
await page.getByRole('button', { name: 'Send', exact: true }).waitFor({ timeout: 60_000 })
const sorted = perFrame.toSorted((a, b) => a - b)
const mean = (before.busy - first.busy) / (before.frames - first.frames)
process.stdout.write(
  `chat: ${rate} tokens/s of Markdown for ${seconds} s after ${earlier} messages: ${mean.toFixed(1)} ms of script, style and layout a frame, ` +
    `median of half seconds ${sorted[Math.floor(sorted.length / 2)]!.toFixed(1)} ms, most ${sorted.at(-1)!.toFixed(1)} ms, longest task ` +
    `${longest === 0 ? 'below 50' : longest.toFixed(0)} ms, ${(before.frames / seconds).toFixed(0)} frames/s; load ${loadavg()[0]!.toFixed(1)}\n`,
)
engine.closeAllConnections()
engine.close()

/**
 * Measures the console in Chromium against the packed executable: the compressed bytes of its first screen and the time
 * until it is usable; then the list of jobs and an execution of 200 nodes while 1,000 jobs are live: script, style and
 * layout on the main thread for each update, and the longest task: the median of five times on each page.
 * `npx node test/bench/console.ts 5`; seconds of each time. Prints one line for each figure.
 */
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { CDPSession, Page } from 'playwright-core'
import { openConsole } from '../console/_console.ts'
import { firstScreen } from '../console/_first-screen.ts'

const seconds = Number(process.argv[2] ?? 5)
const rounds = 5
const [jobs, ranks, width] = [1_000, 20, 10]
/** Pixels of an image: so many that the jobs are still live at the end. */
const side = 512

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const print = (line: string) => process.stdout.write(`console: ${line}; load ${loadavg()[0]!.toFixed(1)}\n`)

/** Seconds of script, style and layout since the page began. */
async function busySeconds(devtools: CDPSession): Promise<number> {
  const { metrics } = await devtools.send('Performance.getMetrics')
  const of = (wanted: string) => metrics.find(({ name }) => name === wanted)!.value
  return of('ScriptDuration') + of('RecalcStyleDuration') + of('LayoutDuration')
}

// Scripts of the page, as text: what they use is known to browsers only.
const watchTasks = `globalThis.tasks = []
new PerformanceObserver(list => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })`
/** Resolves when what a script has changed is drawn. */
const twoFrames = 'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))'

interface Updates {
  /** Milliseconds of script, style and layout from each update to the next: everything in between included. */
  updates: number[]
  /** Of each time, milliseconds; 0: below 50, which is no long task to a browser. */
  longest: number[]
}

/** Follows a page that reads `address` again for each update. */
async function follow(page: Page, address: RegExp): Promise<Updates> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Performance.enable')
  await page.evaluate(watchTasks)
  const updates: number[] = []
  const longest: number[] = []
  let before = await busySeconds(devtools)
  for (let round = 0; round < rounds; round++) {
    const end = performance.now() + seconds * 1_000
    while (performance.now() < end) {
      const answer = await page.waitForResponse(response => address.test(response.url()), { timeout: 30_000 })
      await answer.finished()
      await page.evaluate(twoFrames)
      const after = await busySeconds(devtools)
      updates.push((after - before) * 1_000)
      before = after
    }
    longest.push(await page.evaluate<number>('Math.max(0, ...tasks.splice(0))'))
  }
  return { updates, longest }
}

const longText = (ms: number): string => (ms === 0 ? 'below 50' : ms.toFixed(0))
const said = ({ updates, longest }: Updates): string =>
  `median ${middle(updates).toFixed(1)} ms of script and layout for each of ${updates.length} updates (most ` +
  `${Math.max(...updates).toFixed(1)} ms), longest task ${longText(middle(longest))} ms (most ${longText(Math.max(...longest))} ms)`

const draw = (prompt: string, more: object = {}) => ({
  task: 'slug/text-to-image',
  inputs: { prompt, width: side, height: side, num_inference_steps: 10 },
  ...more,
})
const nodes = Object.fromEntries(
  Array.from({ length: ranks * width }, (_, at) => [`node${at}`, draw(`node ${at}`, { model_id: 'infer/demo' })]),
)
const edges = Array.from({ length: (ranks - 1) * width }, (_, at) => ({
  from: `node${at}`,
  to: `node${Math.floor(at / width + 1) * width + ((at * 3) % width)}`,
}))

await using console_ = await openConsole()

const screens: { bytes: number; ms: number }[] = []
for (let round = 0; round < rounds; round++) screens.push(await firstScreen(console_))
print(
  `first screen: ${(middle(screens.map(({ bytes }) => bytes)) / 1_000).toFixed(0)} kB as sent, usable after ` +
    `${middle(screens.map(({ ms }) => ms)).toFixed(0)} ms (most ${Math.max(...screens.map(({ ms }) => ms)).toFixed(0)} ms)`,
)

const submit = (at: number) => console_.call('/api/jobs', draw(`job ${at}`, { model: 'infer/demo' }))
for (let at = 0; at < jobs; at += 50) await Promise.all(Array.from({ length: 50 }, (_, more) => submit(at + more)))
/** Jobs before the newest in the queue. */
async function waiting(): Promise<number> {
  const { jobs: all } = await console_.call<{ jobs: { queue_position: number | null }[] }>('/api/jobs?limit=1')
  return all[0]!.queue_position ?? 0
}
{
  await using opened = await console_.open('/jobs')
  await opened.page.getByRole('table').waitFor()
  await delay(2_000)
  const found = await follow(opened.page, /\/api\/jobs\?/)
  print(`jobs, ${jobs} submitted, ${await waiting()} waiting at the end: ${said(found)}`)
}
const { execution } = await console_.call<{ execution: { id: string } }>('/api/workflows/run', {
  dag: { nodes, edges },
  priority: 50,
})
{
  await using opened = await console_.open(`/executions/${execution.id}`)
  await opened.page.getByLabel(/^Node node0:/).waitFor()
  await delay(2_000)
  const found = await follow(opened.page, new RegExp(`${execution.id}\\?`))
  const { execution: now } = await console_.call<{ execution: { progress: { completed: number } } }>(
    `/api/workflow-executions/${execution.id}`,
  )
  print(`execution of ${ranks * width} nodes, ${now.progress.completed} of them completed at the end: ${said(found)}`)
}

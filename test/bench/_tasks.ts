import type { Page } from 'playwright-core'

/** A task of the main thread of a page. Milliseconds: by the clock, and of the processor, which a busy machine changes less. */
export interface Task {
  ms: number
  processorMs: number
}

interface TraceEvent {
  name: string
  pid: number
  tid: number
  /** Microseconds. */
  dur?: number
  tdur?: number
  /** Microseconds. */
  ts: number
  args?: { name?: string; data?: { message?: string } }
}

/** Resolves when what a script has changed is drawn and nothing else is to be done. */
const settled =
  'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(done, { timeout: 2_000 }))))'

/** The longest task of a page while something is done with it: script, style, layout and painting together. */
export async function longestTask(page: Page, act: () => Promise<unknown>): Promise<Task> {
  const browser = page.context().browser()!
  await browser.startTracing(page, {
    categories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'],
  })
  // The tracing itself begins with a long task.
  await page.evaluate('console.timeStamp("begun")')
  await act()
  await page.evaluate(settled)
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] }
  const main = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  )
  const begun = traceEvents.find(({ name, args }) => name === 'TimeStamp' && args?.data?.message === 'begun')!
  const tasks = traceEvents.filter(
    ({ name, pid, tid, ts }) => name === 'RunTask' && main.has(`${pid} ${tid}`) && ts > begun.ts,
  )
  return {
    ms: Math.max(0, ...tasks.map(({ dur = 0 }) => dur)) / 1_000,
    processorMs: Math.max(0, ...tasks.map(({ tdur = 0 }) => tdur)) / 1_000,
  }
}

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** The median and the most of the longest tasks of several rounds, as text. */
export function tasksText(tasks: readonly Task[]): string {
  const [wall, processor] = [tasks.map(({ ms }) => ms), tasks.map(({ processorMs }) => processorMs)]
  const text = (values: readonly number[]) =>
    `${middle(values).toFixed(0)} ms (most ${Math.max(...values).toFixed(0)} ms)`
  return `${text(wall)}, of the processor ${text(processor)}`
}

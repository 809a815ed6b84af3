/**
 * Measures the editor of workflows in Chromium against the packed executable, with a workflow of 200 nodes: the longest
 * task of the main thread while it opens, while the view is moved and while a node is renamed; and the time from the last
 * key to the finding of the server, which must come within 300 ms. `npx node test/bench/editor.ts 5`; rounds. Prints one
 * line for each figure: the median and the most of all rounds.
 */
import { loadavg } from 'node:os'
import type { Page } from 'playwright-core'
import { openConsole } from '../console/_console.ts'

const rounds = Number(process.argv[2] ?? 5)
const [ranks, width] = [20, 10]

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const print = (what: string, values: readonly number[]) =>
  process.stdout.write(
    `editor, ${ranks * width} nodes: ${what} ${middle(values).toFixed(0)} ms (most ${Math.max(...values).toFixed(0)} ms); ` +
      `load ${loadavg()[0]!.toFixed(1)}\n`,
  )

// Scripts of the page, as text: what they use is known to browsers only.
const watchTasks = `globalThis.tasks = []
new PerformanceObserver(list => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })`
/** Resolves when what a script has changed is drawn and its tasks are known. */
const settled =
  'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(done, { timeout: 2_000 }))))'
/** Milliseconds from the last key until the word of the finding is in the page. */
const watchFinding = (word: string) => `globalThis.finding = new Promise(done => {
  let key = 0
  addEventListener('input', () => (key = performance.now()), true)
  new MutationObserver((_, observer) => {
    if (!document.body.innerText.includes(${JSON.stringify(word)})) return
    observer.disconnect()
    done(performance.now() - key)
  }).observe(document.body, { childList: true, subtree: true, characterData: true })
})
undefined`

/** The longest task since the last call: tasks below 50 ms are none to a browser. */
async function longestTask(page: Page): Promise<number> {
  await page.evaluate(settled)
  return page.evaluate<number>('Math.max(0, ...tasks.splice(0))')
}

const nodes = Object.fromEntries(
  Array.from({ length: ranks * width }, (_, at) => {
    const before = at - width
    const prompt = before < 0 ? 'A sea' : `As \${nodes.node${before}.result.images[0].url}`
    return [`node${at}`, { model_id: 'infer/demo', task: 'slug/text-to-image', inputs: { prompt } }]
  }),
)

await using console_ = await openConsole()
await console_.call('/api/workflows', { name: 'Large', dag: { nodes, edges: [] } })
const figures: Record<'opening' | 'moving' | 'editing' | 'finding', number[]> = {
  opening: [],
  moving: [],
  editing: [],
  finding: [],
}
for (let round = 0; round < rounds; round++) {
  await using opened = await console_.open('/workflows')
  const { page } = opened
  await page.evaluate(watchTasks)
  await page.getByRole('link', { name: 'Large' }).click()
  await page.locator('.react-flow__node[data-id="node4"]').waitFor()
  figures.opening.push(await longestTask(page))

  // From the margin beside the first nodes to the left and back.
  const { x, y } = (await page.locator('.react-flow__pane').boundingBox())!
  await page.mouse.move(x + 6, y + 90)
  await page.mouse.down()
  for (let step = 1; step <= 30; step++) await page.mouse.move(x + 6 - step * 10, y + 90)
  for (let step = 30; step >= 0; step--) await page.mouse.move(x + 6 - step * 10, y + 90)
  await page.mouse.up()
  figures.moving.push(await longestTask(page))

  await page.locator('.react-flow__node[data-id="node4"]').getByText('node4', { exact: true }).click()
  const prompt = page.getByLabel('prompt', { exact: true })
  await prompt.waitFor()
  await longestTask(page)
  await page.evaluate(watchFinding(`nobody${round}`))
  await prompt.fill('A lake')
  await prompt.blur()
  figures.editing.push(await longestTask(page))
  await prompt.fill(`\${nodes.nobody${round}.result}`)
  figures.finding.push(await page.evaluate<number>('finding'))
}
print('longest task while it opens', figures.opening)
print('longest task while the view moves', figures.moving)
print('longest task of a change', figures.editing)
print('from the last key to the finding', figures.finding)

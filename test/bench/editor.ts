/**
 * Measures the editor of workflows in Chromium against the packed executable, with a workflow of 200 nodes: the longest
 * task of the main thread while it opens, while the view is moved, while a node is selected and while an input changes;
 * and the time from the last
 * key to the finding of the server, which must come within 300 ms. `npx node test/bench/editor.ts 5`; rounds. Prints one
 * line for each figure: the median and the most of all rounds.
 */
import { loadavg } from 'node:os'
import { openConsole } from '../console/_console.ts'
import { longestTask, type Task, tasksText } from './_tasks.ts'

const rounds = Number(process.argv[2] ?? 5)
const [ranks, width] = [20, 10]

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const print = (what: string, said: string) =>
  process.stdout.write(`editor, ${ranks * width} nodes: ${what} ${said}; load ${loadavg()[0]!.toFixed(1)}\n`)

// A script of the page, as text: what it uses is known to browsers only.
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

const nodes = Object.fromEntries(
  Array.from({ length: ranks * width }, (_, at) => {
    const before = at - width
    const prompt = before < 0 ? 'A sea' : `As \${nodes.node${before}.result.images[0].url}`
    return [`node${at}`, { model_id: 'infer/demo', task: 'slug/text-to-image', inputs: { prompt } }]
  }),
)

await using console_ = await openConsole()
await console_.call('/api/workflows', { name: 'Large', dag: { nodes, edges: [] } })
const tasks: Record<'opening' | 'moving' | 'selecting' | 'editing', Task[]> = {
  opening: [],
  moving: [],
  selecting: [],
  editing: [],
}
const finding: number[] = []
for (let round = 0; round < rounds; round++) {
  await using opened = await console_.open('/workflows')
  const { page } = opened
  const large = page.getByRole('link', { name: 'Large' })
  await large.waitFor()
  const node = page.locator('.react-flow__node[data-id="node4"]')
  tasks.opening.push(
    await longestTask(page, async () => {
      await large.click()
      await node.getByText('Fewer').or(node.getByText('All outputs')).first().waitFor()
    }),
  )

  // From the margin beside the first nodes to the left and back.
  const { x, y } = (await page.locator('.react-flow__pane').boundingBox())!
  tasks.moving.push(
    await longestTask(page, async () => {
      await page.mouse.move(x + 6, y + 90)
      await page.mouse.down()
      for (let step = 1; step <= 30; step++) await page.mouse.move(x + 6 - step * 10, y + 90)
      for (let step = 30; step >= 0; step--) await page.mouse.move(x + 6 - step * 10, y + 90)
      await page.mouse.up()
    }),
  )

  const prompt = page.getByLabel('prompt', { exact: true })
  tasks.selecting.push(
    await longestTask(page, async () => {
      await node.getByText('node4', { exact: true }).click()
      await page.locator('#properties').waitFor()
    }),
  )
  await prompt.waitFor()
  await page.evaluate(watchFinding(`nobody${round}`))
  tasks.editing.push(
    await longestTask(page, async () => {
      await prompt.fill('A lake')
      await prompt.blur()
    }),
  )
  await prompt.fill(`\${nodes.nobody${round}.result}`)
  finding.push(await page.evaluate<number>('finding'))
}
print('longest task while it opens', tasksText(tasks.opening))
print('longest task while the view moves', tasksText(tasks.moving))
print('longest task of a selection', tasksText(tasks.selecting))
print('longest task of a change', tasksText(tasks.editing))
print(
  'from the last key to the finding',
  `${middle(finding).toFixed(0)} ms (most ${Math.max(...finding).toFixed(0)} ms)`,
)

import { afterAll, beforeAll, expect, test } from 'vitest'
import { desktop, openConsole, phone, type TestConsole } from './_console.ts'
import { story } from './_story.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const { write, paint } = story.dag.nodes
const definition = {
  ...story,
  description: 'Writes, then paints.',
  parameters: { ...story.parameters, seed: { type: 'integer' } },
  dag: { nodes: { write, paint: { ...paint, inputs: { ...paint.inputs, seed: '${input.seed}' } } } },
}

test('on a phone a person runs a workflow as a form from a link; its execution is shown over the graph with a time line', async () => {
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', definition)
  await using opened = await console.open(`/workflows/${workflow.id}/form?topic=birds`, { size: phone })
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Story' }).waitFor()
  expect(await page.getByLabel('Topic').inputValue()).toBe('birds')
  const run = page.getByRole('button', { name: 'Run', exact: true })
  await run.click()
  // The seed has no default.
  await page.getByText('Fill in this field.').waitFor()
  await page.getByLabel('Seed').first().fill('7')
  await opened.expectAccessible()
  await run.click()
  const result = page.getByRole('region', { name: 'Result of paint' })
  await result.getByRole('img').waitFor()
  expect(await page.getByRole('region', { name: 'Result of write' }).count()).toBe(0)
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await opened.expectAccessible()
  await opened.screenshot('workflow-form')
  const { executions } = await console.call<{ executions: { input_params: object }[] }>('/api/workflow-executions')
  expect(executions[0]!.input_params).toEqual({ topic: 'birds', seed: 7 })

  await page.setViewportSize({ ...desktop })
  await page.getByRole('link', { name: 'Open the execution' }).click()
  await page.getByRole('link', { name: 'Show in the editor' }).click()
  const timeLine = page.getByRole('region', { name: 'Time line' })
  await timeLine.getByText('Completed').waitFor()
  const node = (id: string) => page.locator(`.react-flow__node[data-id="${id}"]`)
  await node('paint').getByRole('img', { name: 'Image of paint' }).waitFor()
  await timeLine.getByRole('button', { name: 'Show node paint' }).click()
  await page.getByRole('heading', { name: 'Node paint' }).waitFor()
  // The graph is above the time line.
  const bottom = async () => {
    const { y, height } = (await node('paint').boundingBox())!
    return y + height
  }
  const above = (await timeLine.boundingBox())!.y
  await expect.poll(bottom).toBeLessThan(above)
  const height = async () => (await timeLine.boundingBox())!.height
  const before = await height()
  await page.getByRole('separator', { name: 'Height of the time line' }).press('ArrowUp')
  await expect.poll(height).toBe(before + 32)
  await opened.expectAccessible()
  await opened.screenshot('workflow-time-line')
  await timeLine.getByRole('button', { name: 'Hide the time line' }).click()
  await timeLine.waitFor({ state: 'detached' })
  await page.getByRole('tab', { name: 'Run' }).click()
  await page.getByRole('button', { name: 'Show the time line' }).click()
  await timeLine.waitFor()
})

test('whoever runs a form reads why the execution was not cancelled, and cancels it', async () => {
  const dag = { nodes: { ask: { task: 'wait/approval', inputs: { title: 'May it go on?' } } } }
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', { name: 'Question', dag })
  await using opened = await console.open(`/workflows/${workflow.id}/form`)
  const { page } = opened
  opened.expectErrors(/503/)
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.getByText('May it go on?').waitFor()
  const refused = { status: 503, json: { error: { message: 'Not now.', code: 'overloaded' } } }
  await page.route('**/cancel', route => route.fulfill(refused), { times: 1 })
  const cancel = page.getByRole('button', { name: 'Cancel' })
  await cancel.click()
  await page.getByText('Not now.').waitFor()
  await cancel.click()
  await page.getByText('Cancelled', { exact: true }).waitFor()
})

test('whoever answers an approval reads what led to it', async () => {
  const notes = Array.from({ length: 12 }, (_, at) => `note${at}`)
  const dag = {
    nodes: {
      draft: { task: 'text/template', inputs: { template: 'A draft about boats' } },
      ...Object.fromEntries(
        notes.map(id => [id, { task: 'text/template', inputs: { template: `A note of ${id}` } }] as const),
      ),
      ask: { task: 'wait/approval', inputs: { title: 'Publish it?' } },
    },
    edges: ['draft', ...notes].map(from => ({ from, to: 'ask' })),
  }
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', { name: 'Publish', dag })
  await console.call(`/api/workflows/${workflow.id}/execute`, { input_params: {} })
  await using opened = await console.open('/approvals')
  const { page } = opened
  await page.getByRole('link', { name: 'Publish it?' }).click()
  await page.getByRole('region', { name: 'Node before: draft' }).getByText('A draft about boats').first().waitFor()
  await page.getByText('Started by the token').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('approval')
  const last = page.getByRole('region', { name: 'Node before: note11' })
  expect(await last.count()).toBe(0)
  await page.getByRole('button', { name: 'Show 1 more node' }).click()
  await last.getByText('A note of note11').first().waitFor()

  // Of an execution with many questions the newest are shown, and the list has all of them.
  const many = { task: 'wait/approval', for_each: notes, inputs: { title: 'Send ${item}?' } }
  const run = { dag: { nodes: { many } } }
  const { execution } = await console.call<{ execution: { id: string } }>('/api/workflows/run', run)
  const asked = () => console.call<{ approvals: object[] }>(`/api/approvals?execution_id=${execution.id}`)
  await expect.poll(async () => (await asked()).approvals.length).toBe(notes.length)
  await page.goto(`/console/executions/${execution.id}`)
  await page.getByRole('link', { name: '7 more questions are open' }).click()
  await page.getByText('Those of the execution').waitFor()
  await expect.poll(() => page.getByRole('row').count()).toBe(notes.length + 1)
  // Who answers one of them comes back to the others, also without an answer.
  await page
    .getByRole('link', { name: /^Send / })
    .first()
    .click()
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.getByText('Those of the execution').waitFor()
  await expect.poll(() => page.getByRole('row').count()).toBe(notes.length)
  await page
    .getByRole('link', { name: /^Send / })
    .first()
    .click()
  await page.getByRole('link', { name: 'Back to Approvals' }).click()
  await page.getByText('Those of the execution').waitFor()
  await page.getByRole('button', { name: 'All approvals' }).click()
  await page.getByRole('link', { name: 'Publish it?' }).waitFor()
})

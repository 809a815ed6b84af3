import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const draw = (id: string, prompt: string, more: object = {}) => ({
  [id]: { task: 'slug/text-to-image', model_id: 'infer/demo', inputs: { prompt, width: 64, height: 64 }, ...more },
})
const run = (nodes: object, more: object = {}) =>
  console.call<{ execution: { id: string } }>('/api/workflows/run', { dag: { nodes }, ...more })

test.each(sizes)('on %s a person follows a workflow and looks at its nodes', async (_, size) => {
  const chat = {
    write: {
      task: 'std/chat-completion',
      model_id: 'infer/tiny-chat',
      inputs: { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }], max_tokens: 8 },
    },
  }
  const { execution } = await run({
    ...chat,
    ...draw('paint', '${nodes.write.result.choices[0].message.content}'),
  })
  await using opened = await console.open('/executions', { size })
  const { page } = opened
  await page.getByRole('link', { name: execution.id }).click()
  await page.getByText('Completed').first().waitFor()
  await page.getByText('2 of 2 nodes completed').waitFor({ timeout: 30_000 })
  await page.getByLabel('Node paint: Completed').click()
  const detail = page.getByRole('region', { name: 'Node paint' })
  await detail.getByRole('img').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('execution')
  await page.getByRole('tab', { name: 'Time line' }).click()
  await page.getByRole('img', { name: /^write: began after/ }).waitFor()
  await opened.expectAccessible()
  await page.getByRole('tab', { name: 'Nodes' }).click()
  await page.getByRole('button', { name: 'write', exact: true }).click()
  await page.getByRole('region', { name: 'Node write' }).getByText('Hello', { exact: true }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('a failed execution says where and why, and runs again from that node', async () => {
  const { execution } = await run({ ...draw('first', 'a'), ...draw('second', '${nodes.first.result.images[5].url}') })
  await using opened = await console.open(`/executions/${execution.id}`)
  const { page } = opened
  await page.getByRole('button', { name: 'Failed at the node second' }).click()
  const detail = page.getByRole('region', { name: 'Node second' })
  await detail.getByRole('alert').waitFor()
  await opened.expectAccessible()
  await detail.getByRole('button', { name: 'Run again from this node' }).click()
  await page.getByText('A new execution has begun.').waitFor()
  await expect.poll(() => page.url()).not.toContain(execution.id)
})

test('a long execution is cancelled', async () => {
  const ids = Array.from({ length: 40 }, (_, at) => `step${at}`)
  const nodes = Object.assign({}, ...ids.map(id => draw(id, id))) as object
  const edges = ids.slice(1).map((to, at) => ({ from: ids[at]!, to }))
  const { execution } = await console.call<{ execution: { id: string } }>('/api/workflows/run', {
    dag: { nodes, edges },
  })
  await using opened = await console.open(`/executions/${execution.id}`)
  const { page } = opened
  await page.getByRole('button', { name: 'Cancel execution' }).click()
  await page.getByText('The execution is cancelled.').waitFor()
  await page.getByRole('button', { name: 'Run failed nodes again' }).waitFor()
  await opened.screenshot('execution-cancelled')
})

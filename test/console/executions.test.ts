import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, seldomOnPhones, sizes, type TestConsole } from './_console.ts'

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
  await page.getByRole('link', { name: execution.id, exact: true }).click()
  await page.getByText('Completed').first().waitFor()
  await page.getByText('2 of 2 nodes completed').waitFor()
  await page.getByLabel('Node paint: Completed').click()
  const detail = page.getByRole('region', { name: 'Node paint' })
  await detail.getByRole('img').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('execution')
  await page.getByRole('tab', { name: 'Time line' }).click()
  await page.getByRole('img', { name: /^write: began after/ }).waitFor()
  // The second node began a part of a second after the first.
  await page.getByRole('img', { name: /^paint: began after [1-9]/ }).waitFor()
  expect(await page.title()).toBe(`${execution.id} · Executions · infer`)
  await opened.expectAccessible()
  await page.getByRole('tab', { name: 'Nodes' }).click()
  await page.getByRole('button', { name: 'write', exact: true }).click()
  const written = page.getByRole('region', { name: 'Node write' })
  await written.getByText('Hello', { exact: true }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await written.getByRole('link', { name: 'Open the job with its log' }).click()
  await page.getByRole('region', { name: 'Inputs' }).getByText('Hello').waitFor()
  expect(await page.title()).toBe('infer/tiny-chat · Jobs · infer')
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
  await page.goto('/console/executions')
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: execution.id, exact: true }) })
  await row.getByRole('cell', { name: '1 of 2, 1 failed' }).waitFor()
})

test.each(seldomOnPhones)('on %s a person picks two executions and sees what differs between them', async (_, size) => {
  const say = (template: string) => ({ task: 'text/template', inputs: { template } })
  const nodes = {
    ...draw('paint', '${nodes.write.result.text}'),
    fixed: say('The end.'),
    write: say('A red house by the ${input.place}.'),
  }
  const { execution: lake } = await run(nodes, { input_params: { place: 'lake' } })
  const { execution: sea } = await run({ ...nodes, more: say('More.') }, { input_params: { place: 'sea' } })
  for (const { id } of [lake, sea]) await console.call(`/api/workflow-executions/${id}?wait=30`)
  await using opened = await console.open('/executions?status=completed', { size })
  const { page } = opened
  await page.getByRole('link', { name: `Compare ${lake.id} with another execution` }).click()
  await page.getByText('Choose the execution to compare with').waitFor()
  expect(new URL(page.url()).search).toBe(`?status=completed&compare=${lake.id}`)
  await opened.expectAccessible()
  await page.getByRole('link', { name: `Compare ${lake.id} with ${sea.id}` }).click()

  await page.getByRole('heading', { level: 1, name: 'Compare executions' }).waitFor()
  await page.getByRole('region', { name: 'Parameters' }).getByText('removed: lake').waitFor()
  const node = (id: string) => page.getByRole('listitem').filter({ has: page.locator('summary', { hasText: id }) })
  await node('more').getByText('Only in the second').waitFor()
  await node('paint').getByText('Inputs', { exact: true }).first().waitFor()
  // The first that differs is open.
  const pictures = node('paint').getByRole('region', { name: 'Result' })
  await pictures.getByRole('img', { name: 'First: images[0].url' }).waitFor()
  await pictures.getByRole('img', { name: 'Second: images[0].url' }).waitFor()
  await node('write').locator('summary').press('Enter')
  const result = node('write').getByRole('region', { name: 'Result' })
  await result.getByText('A red house by the').waitFor()
  expect(await result.locator('dd').first().textContent()).toBe('A red house by the removed: lakeadded: sea.')
  await node('fixed').locator('summary').press('Enter')
  await node('fixed').getByText('The same in both.').first().waitFor()
  await opened.expectAccessible()
  await opened.screenshot('execution-comparison')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  // The part beside the navigation scrolls, and not the page too.
  if (size.width > 1000) expect(await page.evaluate('document.documentElement.scrollHeight <= innerHeight')).toBe(true)

  await page.getByLabel('Only nodes that differ').check()
  await node('fixed').waitFor({ state: 'detached' })
  expect(new URL(page.url()).search).toBe('?only=different')
  await page.getByRole('link', { name: 'Swap them' }).click()
  await page.getByRole('region', { name: 'Parameters' }).getByText('removed: sea').waitFor()
  await node('more').getByText('Only in the first').waitFor()
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

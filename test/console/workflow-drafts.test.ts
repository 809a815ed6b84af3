import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, type TestConsole } from './_console.ts'

/** What the editor keeps in the browser, and what it takes from files. */
let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const workflow = (name: string) => ({
  name,
  dag: { nodes: { paint: { model_id: 'infer/demo', task: 'slug/text-to-image', inputs: { prompt: 'the sea' } } } },
})

test('two tabs with the same workflow keep a draft each, and a new tab has the newest', async () => {
  const created = await console.call<{ workflow: { id: string } }>('/api/workflows', workflow('Shared'))
  const path = `/workflows/${created.workflow.id}`
  await using opened = await console.open(path)
  const { page: first, context } = opened
  const second = await context.newPage()
  await second.goto(`/console${path}`)
  const name = (page: typeof first) => page.getByLabel('Name', { exact: true })
  await name(first).fill('From the first tab')
  await name(first).press('Tab')
  await first.getByText('Not saved').waitFor()
  await name(second).fill('From the second tab')
  await name(second).press('Tab')
  await second.getByText('Not saved').waitFor()
  await first.reload()
  await expect.poll(() => name(first).inputValue()).toBe('From the first tab')
  await second.reload()
  await expect.poll(() => name(second).inputValue()).toBe('From the second tab')
  const third = await context.newPage()
  await third.goto(`/console${path}`)
  await expect.poll(() => name(third).inputValue()).toBe('From the second tab')
})

test('a file that is dropped on the editor becomes the workflow, and undo brings back the one before', async () => {
  await using opened = await console.open('/workflows/new')
  const { page } = opened
  const name = page.getByLabel('Name', { exact: true })
  const before = await name.inputValue()
  const text = JSON.stringify(JSON.stringify(workflow('From a file')))
  const files = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File([${text}], 'story.json'))
    return transfer
  })()`)
  await page.getByRole('tabpanel').first().dispatchEvent('drop', { dataTransfer: files })
  await expect.poll(() => name.inputValue()).toBe('From a file')
  await page.getByText('story.json is imported. Undo brings back what was there.').waitFor()
  await opened.expectAccessible()
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect.poll(() => name.inputValue()).toBe(before)
})

test('selected nodes are copied to another workflow, and duplicated', async () => {
  const { workflow: created } = await console.call<{ workflow: { id: string } }>('/api/workflows', workflow('Origin'))
  await using opened = await console.open(`/workflows/${created.id}`)
  const { page } = opened
  await page.getByLabel('Node paint', { exact: true }).click({ position: { x: 20, y: 10 } })
  await page.keyboard.press('Control+d')
  await page.getByLabel('Node paint2', { exact: true }).click({ position: { x: 20, y: 10 } })
  await page.getByLabel('Node paint', { exact: true }).click({ position: { x: 20, y: 10 }, modifiers: ['Control'] })
  await page.keyboard.press('Control+c')
  await page.goto('/console/workflows/new')
  await page.getByLabel('Name', { exact: true }).waitFor()
  await page.evaluate('document.activeElement?.blur()')
  await page.keyboard.press('Control+v')
  for (const name of ['Node paint', 'Node paint2']) await page.getByLabel(name, { exact: true }).waitFor()
  await opened.expectAccessible()
})

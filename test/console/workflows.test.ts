import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const definition = {
  name: 'Story',
  tags: ['tales'],
  description: 'A story and its picture',
  dag: {
    nodes: {
      write: { model_id: 'infer/tiny-chat', task: 'std/completion', inputs: { prompt: 'Once', max_tokens: 4 } },
    },
  },
}

test.each(sizes)('on %s a person finds, duplicates, compares, restores and deletes workflows', async (_, size) => {
  const name = `Story ${size.width}`
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', { ...definition, name })
  await console.call(`/api/workflows/${workflow.id}`, { timeout: 60 }, 'PATCH')
  await using opened = await console.open('/workflows', { size })
  const { page } = opened
  await page.getByRole('link', { name, exact: true }).waitFor()
  await page.getByRole('searchbox', { name: 'Search workflows' }).fill('nothing like it')
  await page.getByText('No workflow has such a name.').waitFor()
  expect(new URL(page.url()).searchParams.get('q')).toBe('nothing like it')
  await page.getByRole('searchbox', { name: 'Search workflows' }).fill(name)
  await page.getByRole('button', { name: `Duplicate: ${name}`, exact: true }).click()
  await page.getByRole('link', { name: `${name} (copy)` }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('workflows')

  await page.getByRole('button', { name: `Versions: ${name}`, exact: true }).click()
  await page.getByRole('heading', { level: 1, name: `Versions of ${name}` }).waitFor()
  const changes = page.getByRole('region', { name: 'Changes from version 1 to version 2' }).last()
  await changes.getByText('added: timeout: 60').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('workflow-versions')
  await page.getByRole('button', { name: 'Restore version 1' }).click()
  await page.getByText('Version 1 was restored as version 3.').waitFor()
  await page.getByText('removed: timeout: 60').waitFor()
  expect(new URL(page.url()).search).toBe('?older=2&newer=3')
  const restored = await console.call<{ workflow: object }>(`/api/workflows/${workflow.id}`)
  expect(restored.workflow).toMatchObject({ tags: ['tales'] })
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)

  await page.getByRole('link', { name: 'Back to Workflows' }).click()
  await page.getByRole('button', { name: `Delete: ${name} (copy)` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete workflow' }).click()
  await page.getByText(`${name} (copy) was deleted.`).waitFor()
  await page.getByRole('link', { name: `${name} (copy)` }).waitFor({ state: 'detached' })
})

test('an exported workflow is the YAML of the editor, and a listed one can be run at once', async () => {
  await console.call('/api/workflows', { ...definition, name: 'Exported' })
  await using opened = await console.open('/workflows?q=Exported')
  const { page } = opened
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export YAML: Exported' }).click()
  const file = await download
  expect(file.suggestedFilename()).toBe('exported.yaml')
  let text = ''
  for await (const part of await file.createReadStream()) text += String(part)
  expect(text).toContain(
    'name: Exported\ndescription: A story and its picture\ntags:\n  - tales\ndag:\n  nodes:\n    write:\n',
  )
  await page.getByRole('button', { name: 'Run: Exported' }).click()
  const dialog = page.getByRole('dialog', { name: 'Run workflow' })
  await dialog.getByRole('button', { name: 'Run now' }).click()
  await page.getByRole('tabpanel', { name: 'Run' }).getByText('Completed').first().waitFor()
})

test('a person finds workflows and executions by a tag, and the filter is in the address', async () => {
  const tag = 'night'
  const dag = { nodes: { write: { task: 'text/template', inputs: { template: 'Once.' } } } }
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', {
    name: 'Tagged',
    tags: [tag, 'tales'],
    dag,
  })
  const run = () => console.call(`/api/workflows/${workflow.id}/execute`, {})
  // One more than a page has.
  for (let count = 0; count < 51; count += 17) await Promise.all(Array.from({ length: 17 }, run))
  await using opened = await console.open('/workflows')
  const { page } = opened
  const search = () => Object.fromEntries(new URL(page.url()).searchParams)
  const filter = page.getByLabel('Tag', { exact: true })
  await page.getByRole('link', { name: `Only with the tag ${tag}` }).click()
  await expect.poll(search).toEqual({ tag })
  await expect.poll(() => page.getByRole('row').count()).toBe(2)
  expect(await filter.inputValue()).toBe(tag)
  await opened.expectAccessible()
  await filter.fill('no such tag')
  await filter.press('Enter')
  await page.getByText('No workflow matches this filter.').waitFor()
  await filter.fill('')
  await expect.poll(search).toEqual({})
  await page.getByRole('link', { name: `Only with the tag ${tag}` }).waitFor()

  // A page at a time, and the filter stays.
  await page.goto(`/console/executions?tag=${tag}`)
  await expect.poll(() => page.getByRole('row').count()).toBe(51)
  // So low that the following page has to be scrolled, too: it is shown from its beginning.
  await page.setViewportSize({ width: 1280, height: 160 })
  await page.getByRole('button', { name: 'Older executions' }).click()
  await expect.poll(() => page.getByRole('row').count()).toBe(2)
  expect(await page.evaluate('document.getElementById("main").parentElement.scrollTop')).toBe(0)
  expect(search()).toEqual({ tag, after: expect.stringMatching(/^exec_/) as string })
  await page.getByRole('button', { name: 'Newest executions' }).click()
  await expect.poll(search).toEqual({ tag })
  await page.goto('/console/executions?tag=none')
  await page.getByText('No execution matches this filter').waitFor()

  // The last size is a phone.
  await using phone = await console.open(`/workflows?tag=${tag}`, { size: sizes.at(-1)![1] })
  await phone.page.getByRole('link', { name: 'Tagged', exact: true }).waitFor()
  await phone.expectAccessible()
  expect(await phone.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

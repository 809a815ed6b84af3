import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { desktop, openConsole, type TestConsole } from './_console.ts'
import { story } from './_story.ts'

/** The document that the editor changes: its YAML, its versions, its drafts in the browser, and what is copied into it. */
let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

const stored = async (name: string) =>
  (await console.call<{ workflow: { id: string } }>('/api/workflows', { ...story, name })).workflow.id

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

const yaml = `# What children like
name: Tale
dag:
  nodes:
    # The author
    write:
      model_id: infer/tiny-chat
      task: std/chat-completion
      inputs:
        messages:
          - role: user
            content: Write. # short
        max_tokens: 8
`

test('graph and YAML stay in step, comments stay, problems appear where they belong, and one undo serves both', async () => {
  const id = await stored('Story')
  await using opened = await console.open(`/workflows/${id}`, { size: desktop })
  const { page } = opened
  await page.getByRole('tab', { name: 'YAML' }).click()
  const text = page.getByRole('textbox', { name: 'YAML' })
  const lines = async () => (await text.innerText()).replaceAll('\n\n', '\n')
  await text.click()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(yaml)
  const node = page.locator('.react-flow__node[data-id="write"]')
  await page.getByRole('heading', { level: 1, name: 'Tale' }).waitFor()
  await expect.poll(() => page.locator('.react-flow__node').count()).toBe(1)

  // A form changes one line and leaves the comments.
  await page.getByRole('tab', { name: 'Properties' }).click()
  await node.getByText('write', { exact: true }).click()
  const content = page.getByLabel('messages[0].content', { exact: true })
  await content.fill('Write ${input.what}.')
  await content.blur()
  await expect.poll(() => button(page, 'Save').isEnabled()).toBe(true)
  await page.getByRole('tab', { name: 'YAML' }).click()
  await expect.poll(lines).toContain('content: Write ${input.what}. # short')
  expect(await lines()).toContain('# What children like')
  expect(await lines()).toContain('    # The author')

  // Undo takes the form's change back, redo does it again.
  await button(page, 'Undo').click()
  await expect.poll(lines).toContain('content: Write. # short')
  await button(page, 'Redo').click()
  await expect.poll(lines).toContain('${input.what}')

  // A wrong reference is shown at its field, in the node, in the list of problems and on its line.
  await page.getByRole('tab', { name: 'Properties' }).click()
  await content.fill('${nodes.nobody.result}')
  await content.blur()
  await page
    .getByText(/nobody/)
    .locator('visible=true')
    .nth(1)
    .waitFor()
  await expect.poll(() => content.getAttribute('aria-invalid')).toBe('true')
  await node.getByText('Error').waitFor()
  await page.getByRole('tab', { name: /^Problems/ }).click()
  await button(page, 'Line 12').click()
  await page.locator('.cm-lintRange-error').waitFor()
  await opened.expectAccessible()

  // Saved comments come back when the workflow is opened again.
  await button(page, 'Save').click()
  await page.getByText('Saved as version 2.').waitFor()
  await page.reload()
  await page.getByRole('tab', { name: 'YAML' }).click()
  await expect.poll(lines).toContain('# What children like')

  // A fault in the text does not make the workflow disappear, and what is typed at the last moment is there again.
  await text.click()
  await page.keyboard.press('Control+Home')
  await page.keyboard.insertText('name: [\n')
  await page.reload()
  await page.getByText('The YAML has a fault on line').waitFor()
  await node.waitFor()
  await page.getByRole('button', { name: /^Problems/ }).click()
  await page.getByRole('tab', { name: 'YAML' }).click()
  await expect.poll(lines).toContain('name: [')
})

test('somebody who may only read sees the workflow and changes nothing; another version is not overwritten', async () => {
  const id = await stored('Read')
  const token = await console.token(['user:read'])
  await using reader = await console.open(`/workflows/${id}`, { token })
  await reader.page.getByText('it lacks the scope user:write').waitFor()
  expect(await button(reader.page, 'Save').count()).toBe(0)
  await using writer = await console.open(`/workflows/${id}`)
  writer.expectErrors(/409/)
  const { page } = writer
  await page.getByLabel('Description').first().fill('Mine')
  await page.getByText('Not saved').waitFor()
  await console.call(`/api/workflows/${id}`, { description: 'Theirs' }, 'PATCH')
  await button(page, 'Save').click()
  await page.getByText('Somebody saved another version meanwhile.').waitFor()
  await button(page, 'Load it and drop my changes').click()
  await expect.poll(() => page.getByLabel('Description').first().inputValue()).toBe('Theirs')
})

test('what is typed while a version is saved is not saved; keys reach only what has the focus', async () => {
  const id = await stored('Careful')
  await using opened = await console.open(`/workflows/${id}`)
  // The workflow has an odd id for a moment.
  opened.expectErrors(/400/)
  const { page } = opened
  const focused = (name: string) =>
    expect
      .poll(() =>
        page.evaluate<string>(
          'document.activeElement.labels?.[0]?.textContent ?? document.activeElement.ariaLabel ?? ""',
        ),
      )
      .toBe(name)
  const description = page.getByLabel('Description').first()
  await description.fill('first')
  await page.getByText('Not saved').waitFor()
  let answer = () => {}
  await page.route(`**/api/workflows/${id}`, async route => {
    await new Promise<void>(resolve => (answer = resolve))
    await route.continue()
  })
  const sent = page.waitForRequest(request => request.method() === 'PUT')
  await button(page, 'Save').click()
  await sent
  await description.fill('second')
  await description.blur()
  answer()
  await page.getByText('Saved as version 2.').waitFor()
  await page.getByText('Not saved').waitFor()
  expect(await button(page, 'Save').isEnabled()).toBe(true)

  // A parameter is renamed: the next field has the focus. It is removed: the focus stays in the parameters.
  const parameters = page.getByRole('region', { name: 'Parameters' })
  await parameters.getByLabel('Name').fill('subject')
  await page.keyboard.press('Tab')
  await focused('Type')
  await parameters.getByRole('button', { name: 'Remove parameter subject' }).press('Enter')
  await focused('Parameters')

  // A dialog begins in its first field and gives the focus back. Its keys do not reach the graph.
  const paint = page.locator('.react-flow__node[data-id="paint"]')
  await paint.getByText('paint', { exact: true }).click()
  await button(page, 'Add node').press('Enter')
  await focused('Search tasks')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Delete')
  await page.keyboard.press('Escape')
  await expect.poll(() => page.evaluate<string>('document.activeElement.textContent')).toBe('Add node')
  await paint.waitFor()

  // While a number is typed, its field stays.
  const seed = page.getByLabel('seed', { exact: true })
  await seed.fill('-')
  await expect.poll(() => seed.getAttribute('aria-invalid')).toBe('true')
  await page.keyboard.type('12')
  await expect.poll(() => seed.inputValue()).toBe('-12')

  // An id that no node may have is a problem, and not the end of the page.
  await page.getByLabel('Id', { exact: true }).fill('a "b"')
  await page.keyboard.press('Enter')
  await page
    .getByText(/a name holds no quotes/)
    .first()
    .waitFor()
  await page.getByRole('heading', { name: 'Node a "b"' }).waitFor()

  await page.getByRole('tab', { name: 'YAML' }).click()
  await page.getByRole('textbox', { name: 'YAML' }).click()
  await page.keyboard.press('Control+f')
  await page.getByRole('textbox', { name: 'Find' }).waitFor()
  await opened.expectAccessible()
})

import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { desktop, openConsole, phone, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const button = (page: Page | Locator, name: string) => page.getByRole('button', { name, exact: true })

const definition = {
  name: 'Verses',
  dag: {
    nodes: {
      split: { task: 'text/split', inputs: { text: 'One. Two. Three.', size: 5, overlap: 0 } },
      check: { task: 'text/template', inputs: { template: '${nodes.split.result.chunks[0]}' } },
      verse: { task: 'text/template', note: 'One for each part.', inputs: { template: '' } },
    },
  },
}

test('a person lets a node run for the items of a list, and answers an approval that stands in the way', async () => {
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', definition)
  await using opened = await console.open(`/workflows/${workflow.id}`, { size: desktop })
  const { page } = opened
  // A number that is none is refused for a moment.
  opened.expectErrors(/400/)
  const node = (id: string) => page.locator(`.react-flow__node[data-id="${id}"]`)
  const dialog = (name: string) => page.getByRole('dialog', { name })

  // By keyboard: the list of the node, then its input, which is offered the item.
  await node('verse').focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Node verse' }).waitFor()
  await button(page, 'Take the list from a parameter or another node').press('Enter')
  await button(
    dialog('For the items of which list').getByRole('region', { name: 'Result of split' }),
    'chunks list',
  ).press('Enter')
  await node('verse').getByText('for each: split.chunks').waitFor()
  await button(page, 'Take template from a parameter or another node').press('Enter')
  const items = dialog('Where does template come from?').getByRole('region', { name: 'Item' })
  await opened.expectAccessible()
  await items.getByRole('button', { name: /^item text/ }).press('Enter')
  const template = page.getByLabel('template', { exact: true })
  await expect.poll(() => template.inputValue()).toBe('${item}')
  await template.fill('Verse: ${item}')
  await page.locator('.react-flow__edge').nth(1).waitFor({ state: 'attached' })

  // What is wrong stands at its field.
  await page.getByLabel('Maximum number of items').fill('0')
  await expect.poll(() => page.getByLabel('Maximum number of items').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Maximum number of items').fill('')

  // The note appears when its mark has the focus.
  const note = node('verse').getByRole('tooltip', { includeHidden: true })
  expect(await note.isVisible()).toBe(false)
  await button(node('verse'), 'Note').focus()
  await note.filter({ hasText: 'One for each part.' }).waitFor({ state: 'visible' })

  // An approval, which comes after the check.
  await button(page, 'Add node').click()
  await dialog('Add a node')
    .getByRole('button', { name: /^Approval by a person/ })
    .click()
  await page.getByLabel('title', { exact: true }).fill('Publish the verses?')
  await page.getByLabel('Add a node to run after').selectOption('check')
  await button(page, 'Arrange nodes automatically').click()
  const graph = (await page.locator('.react-flow').boundingBox())!
  await expect
    .poll(async () => {
      const { x, width } = (await node('approval').boundingBox())!
      return x + width <= graph.x + graph.width
    })
    .toBe(true)

  // It is run up to there, waits, says who may answer, and goes on.
  await button(page, 'Run to here').click()
  await button(dialog('Run to the node approval'), 'Run now').click()
  await node('approval').getByText('Waiting for an answer').waitFor()
  await node('approval').getByText('Every token with the scope user:write may answer.').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('workflow-lists')
  const question = page.waitForEvent('popup')
  await node('approval').getByRole('link', { name: 'Answer' }).click()
  const answering = await question
  await answering.getByLabel('Comment').fill('Fine')
  await button(answering, 'Approve').click()
  await answering.getByText('Nothing waits for an answer').waitFor()
  await answering.close()
  await node('approval').getByText('Completed').waitFor()

  // The answer is pinned: the next run takes it and says so.
  await node('approval').getByText('approval', { exact: true }).click()
  await button(page, 'Pin this result').click()
  await node('approval').getByRole('img', { name: 'Pinned result' }).waitFor()
  await expect
    .poll(() => page.getByRole('textbox', { name: 'Pinned result' }).inputValue())
    .toContain('"approved": true')
  await button(page, 'Run to here').click()
  await dialog('Run to the node approval').getByRole('button', { name: 'Cancel' }).click()
  await button(page, 'Save').click()
  await page.getByText('Saved as version 2.').waitFor()
  await button(page, 'Run').click()
  await dialog('Run workflow').getByText('these nodes do not run: approval').waitFor()
  await button(dialog('Run workflow'), 'Run now').click()
  await node('verse').getByText('Completed').waitFor()
  await node('verse').getByText('2 of 2 items').waitFor()
  await page.getByRole('tabpanel', { name: 'Run' }).getByText('pinned').waitFor()
  const stored = await console.call<{ workflow: object }>(`/api/workflows/${workflow.id}`)
  expect(stored.workflow).toMatchObject({
    dag: {
      nodes: {
        verse: { for_each: '${nodes.split.result.chunks}', inputs: { template: 'Verse: ${item}' } },
        approval: { pin: { approved: true, comment: 'Fine' } },
      },
    },
  })
})

test('on a phone the page of the execution shows who may answer, and answers', async () => {
  const nodes = { ask: { task: 'wait/approval', inputs: { title: 'Go on?', approvers: ['root', 'anna'] } } }
  const { execution } = await console.call<{ execution: { id: string } }>('/api/workflows/run', { dag: { nodes } })
  await using opened = await console.open(`/executions/${execution.id}`, { size: phone })
  const { page } = opened
  await page.getByText('May answer: root, anna.').first().waitFor()
  await opened.expectAccessible()
  const question = page.waitForEvent('popup')
  await page.getByRole('link', { name: 'Answer' }).press('Enter')
  await button(await question, 'Reject').click()
  await page.getByText('1 of 1 nodes completed').waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('of a node that runs a workflow a person takes a value which that workflow keeps', async () => {
  const inner = {
    name: 'Inner verses',
    dag: {
      nodes: {
        split: { task: 'text/split', inputs: { text: 'One. Two.', size: 5, overlap: 0 }, outputs: ['chunks[0]'] },
        write: { task: 'text/template', inputs: { template: 'A verse.' } },
      },
    },
  }
  await console.call('/api/workflows', inner)
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', {
    name: 'Outer verses',
    dag: {
      nodes: {
        run: { task: 'workflow/run', inputs: { workflow: 'Inner verses' } },
        show: { task: 'text/template', inputs: { template: '' } },
      },
    },
  })
  await using opened = await console.open(`/workflows/${workflow.id}`, { size: desktop })
  const { page } = opened
  const node = (id: string) => page.locator(`.react-flow__node[data-id="${id}"]`)
  // The card shows the value that people mostly want.
  await node('run').getByTitle('Output write.result.text').waitFor()
  await node('show').focus()
  await page.keyboard.press('Enter')
  await button(page, 'Take template from a parameter or another node').press('Enter')
  const offered = page.getByRole('dialog').getByRole('region', { name: 'Result of run' })
  await offered.getByText('All outputs').click()
  await offered.getByRole('button', { name: /^split result\.chunks\[0\] text/ }).waitFor()
  await opened.expectAccessible()
  await offered.getByRole('button', { name: /^write\.result\.text text/ }).press('Enter')
  await expect
    .poll(() => page.getByLabel('template', { exact: true }).inputValue())
    .toBe('${nodes.run.result.write.result.text}')
  await button(page, 'Run').click()
  await button(page.getByRole('dialog', { name: 'Run workflow' }), 'Run now').click()
  await node('show').getByText('A verse.').waitFor()
})

test('of more than a hundred workflows the one changed first is found by its name, and named by executions', async () => {
  const named = async (name: string, template: string) => {
    const dag = { nodes: { write: { task: 'text/template', inputs: { template } } } }
    const parameters = { topic: { type: 'string' } }
    return (await console.call<{ workflow: { id: string } }>('/api/workflows', { name, parameters, dag })).workflow
  }
  const oldest = await named('Old verses', 'A verse about ${input.topic}')
  await console.call(`/api/workflows/${oldest.id}/execute`, { input_params: { topic: 'boats' } })
  await Promise.all(Array.from({ length: 101 }, (_, at) => named(`Verses ${at}`, 'Another verse')))
  const dag = { nodes: { run: { task: 'workflow/run', inputs: {} } } }
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', { name: 'Outermost', dag })
  await using opened = await console.open(`/workflows/${workflow.id}`, { size: desktop })
  const { page } = opened
  await page.locator('.react-flow__node[data-id="run"]').focus()
  await page.keyboard.press('Enter')
  // Its parameters are those of the workflow that is chosen.
  await opened.choose('Workflow', 'Old verses')
  await page.getByLabel('input.topic', { exact: true }).waitFor()
  await button(page, 'Add node').click()
  const drawer = page.getByRole('dialog', { name: 'Add a node' })
  await drawer.getByRole('button', { name: /^Nodes of another workflow/ }).click()
  await drawer.getByText('100 are shown. Type to find the others.').waitFor()
  await opened.expectAccessible()
  await page.keyboard.type('old v')
  await drawer.getByRole('option', { name: 'Old verses' }).waitFor()
  await page.keyboard.press('Enter')
  await button(drawer, 'Insert').click()
  await page.locator('.react-flow__node[data-id="write"]').waitFor()
  await page.goto('/console/executions')
  await page.getByRole('link', { name: 'Old verses' }).waitFor()

  // The list of commands has the newest; its search leads to all.
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /^Find pages/ }).fill('old verses')
  await page.getByRole('option', { name: 'Search “old verses” in all workflows' }).click()
  await page.getByRole('table').getByRole('link', { name: 'Old verses' }).waitFor()
})

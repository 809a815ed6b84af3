import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { desktop, openConsole, phone, type TestConsole } from './_console.ts'
import { story } from './_story.ts'

/** The graph and the list of the editor: how a person builds a workflow and runs it. */
let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const button = (page: Page | Locator, name: string) => page.getByRole('button', { name, exact: true })

/** Drags from one port to another, as a hand does. */
async function drag(page: Page, from: Locator, to: Locator): Promise<void> {
  await from.hover()
  await page.mouse.down()
  await to.hover({ position: { x: 1, y: 1 } })
  await to.hover()
  await page.mouse.up()
}

async function addTask(page: Page, name: RegExp): Promise<void> {
  await page.getByRole('button', { name: 'Add node' }).first().click()
  await page.getByRole('dialog', { name: 'Add a node' }).getByRole('button', { name }).click()
}

/** Drags a task from the drawer, which makes room, and drops it in the middle of the canvas, left of the details. */
async function dropTask(page: Page, name: RegExp, onto: Locator): Promise<void> {
  await page.getByRole('button', { name: 'Add node' }).first().click()
  const drawer = page.getByRole('dialog', { name: 'Add a node' })
  await drawer.getByRole('button', { name }).hover()
  await page.mouse.down()
  await page.mouse.move(500, 400, { steps: 3 })
  await drawer.waitFor({ state: 'detached' })
  const { x, y, width, height } = (await onto.boundingBox())!
  await page.mouse.move(x + width * 0.5, y + height / 2, { steps: 3 })
  await page.mouse.up()
}

const stored = async (fields: object = {}) =>
  (await console.call<{ workflow: { id: string } }>('/api/workflows', { ...story, ...fields })).workflow.id

test('by mouse only, a person builds a workflow of three nodes, saves it, runs it and sees what it made', async () => {
  await using opened = await console.open('/workflows', { size: desktop })
  const { page } = opened
  await page.getByText('No workflows yet').waitFor()
  await page.getByRole('link', { name: 'New workflow' }).first().click()
  await dropTask(page, /^Chat/, page.getByText('No nodes yet'))
  await page.locator('.react-flow__node').waitFor()
  await dropTask(page, /^Text to image/, page.getByLabel('Graph of the workflow'))
  await addTask(page, /^Text to speech/)
  const node = (id: string) => page.locator(`.react-flow__node[data-id="${id}"]`)
  // Where it was dropped: the first stays left of it.
  const left = async (id: string) => (await node(id).boundingBox())!.x
  expect(await left('image')).toBeGreaterThan(await left('chat'))
  await node('chat').getByRole('button', { name: 'All outputs' }).click()
  await node('chat').getByText('finish_reason').waitFor()
  const answer = node('chat').getByTitle('Output choices[0].message.content')
  await node('speech').waitFor()
  await drag(page, answer, node('image').getByTitle('Input prompt'))
  await page.locator('.react-flow__edge').first().waitFor({ state: 'attached' })
  await drag(page, answer, node('speech').getByTitle('Input input'))
  await expect.poll(() => page.locator('.react-flow__edge').count()).toBe(2)
  await opened.expectAccessible()
  await node('chat').getByRole('button', { name: 'Fewer outputs' }).click()
  await button(page, 'Save').click()
  await page.getByText('Saved as version 1.').waitFor()
  await button(page, 'Run').click()
  await button(page.getByRole('dialog', { name: 'Run workflow' }), 'Run now').click()
  await page.getByRole('tabpanel', { name: 'Run' }).getByRole('img', { name: 'Image of image' }).waitFor()
  await node('image').getByRole('img', { name: 'Image of image' }).waitFor()
  await expect.poll(() => node('speech').locator('audio').count()).toBe(1)
  await opened.screenshot('workflow-editor')
  const { workflows } = await console.call<{ workflows: object[] }>('/api/workflows?include=dag')
  expect(workflows[0]).toMatchObject({
    dag: {
      nodes: {
        image: { inputs: { prompt: '${nodes.chat.result.choices[0].message.content}' } },
        speech: { inputs: { input: '${nodes.chat.result.choices[0].message.content}' } },
      },
    },
  })
})

test('a line says where it fits, and on the empty canvas the tasks that fit are offered; / opens the same', async () => {
  const { nodes } = story.dag
  const change = {
    task: 'slug/image-to-image',
    model_id: 'infer/demo',
    inputs: { prompt: 'ink', image_url: '', strength: 0.5 },
  }
  const id = await stored({ name: 'Lines', dag: { nodes: { ...nodes, change } } })
  await using opened = await console.open(`/workflows/${id}`, { size: { width: 1600, height: 900 } as never })
  const { page } = opened
  const node = (id: string) => page.locator(`.react-flow__node[data-id="${id}"]`)
  const drawer = page.getByRole('dialog', { name: 'Add a node' })
  await node('write').getByText('Answer').waitFor()
  await node('paint').getByTitle('Output images[0].url').hover()
  await page.mouse.down()
  const strength = node('change').getByText('Strength')
  await strength.hover({ force: true })
  await page.getByText('Strength takes a number, and Image is an image.').locator('visible=true').waitFor()
  const fit = async (title: string) => node('change').locator(`[title^="${title}"]`).first().getAttribute('data-fit')
  expect([await fit('Input image_url'), await fit('Input prompt'), await fit('Strength takes')]).toEqual([
    'fits',
    'possible',
    'refused',
  ])
  const canvas = (await page.getByLabel('Graph of the workflow').boundingBox())!
  const [x, y] = [canvas.x + 300, canvas.y + canvas.height - 60]
  await page.mouse.move(x, y, { steps: 3 })
  await page.mouse.up()
  await drawer.getByRole('heading', { name: 'Tasks that fit Image' }).waitFor()
  expect(await drawer.getByRole('button', { name: /^Chat/ }).count()).toBe(0)
  await opened.expectAccessible()
  const before = await page.locator('.react-flow__edge').count()
  await page.keyboard.type('image to video')
  await page.keyboard.press('Enter')
  await drawer.waitFor({ state: 'detached' })
  await page.locator('.react-flow__node[data-id="video"]').waitFor()
  await expect.poll(() => page.locator('.react-flow__edge').count()).toBe(before + 1)
  await page.evaluate('document.activeElement.blur()')
  await page.keyboard.press('/')
  await drawer.waitFor()
  await page.keyboard.type('speech')
  await page.keyboard.press('ArrowDown')
  await expect.poll(() => page.evaluate<string>('document.activeElement.textContent')).toContain('speech')
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  await page.mouse.dblclick(x, canvas.y + 80)
  await drawer.waitFor()
})

test('the graph fills the window, and the panel over it is made wider by keyboard, and hidden', async () => {
  const id = await stored({ name: 'Wide' })
  await using opened = await console.open(`/workflows/${id}`, { size: desktop })
  const { page } = opened
  const canvas = page.getByLabel('Graph of the workflow')
  const box = async () => (await canvas.boundingBox())!
  await page.locator('.react-flow__node').first().waitFor()
  // All but the navigation and the line with the name.
  expect((await box()).width).toBe(desktop.width - 224)
  expect((await box()).height).toBeGreaterThan(desktop.height - 80)
  const panel = page.getByRole('region', { name: 'Details' })
  const width = async () => (await panel.boundingBox())!.width
  const before = await width()
  // The graph is beside the panel, not below it.
  const { x: edge } = (await panel.boundingBox())!
  await expect
    .poll(async () => {
      const { x, width } = (await page.locator('.react-flow__node[data-id="paint"]').boundingBox())!
      return x + width
    })
    .toBeLessThan(edge)
  const handle = page.getByRole('separator', { name: 'Width of the details' })
  await handle.press('ArrowLeft')
  await expect.poll(width).toBe(before + 32)
  await opened.expectAccessible()
  await page.reload()
  await expect.poll(width).toBe(before + 32)
  await button(page, 'Hide details').click()
  await panel.waitFor({ state: 'detached' })
  await opened.expectAccessible()
  await button(page, 'Show details').click()
  await panel.waitFor()
})

test('on a phone and by keyboard, a person adds a node in the list and chooses where its prompt comes from', async () => {
  const id = await stored({ name: 'By keyboard' })
  await using opened = await console.open(`/workflows/${id}`, { size: phone })
  const { page } = opened
  const press = async (name: string, within: Page | Locator = page) => {
    await button(within, name).focus()
    await page.keyboard.press('Enter')
  }
  await page.getByRole('tab', { name: 'Graph' }).focus()
  await page.keyboard.press('ArrowRight')
  const list = page.getByRole('table', { name: 'Nodes' })
  await list.getByRole('button', { name: 'paint' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('workflow-editor-list')
  await press('Add node')
  const drawer = page.getByRole('dialog', { name: 'Add a node' })
  await page.keyboard.type('speech')
  await drawer.getByRole('button', { name: /^Text to speech/ }).focus()
  await opened.expectAccessible()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Node speech' }).waitFor()
  await press('Take input from a parameter or another node')
  const dialog = page.getByRole('dialog', { name: 'Where does input come from?' })
  await opened.expectAccessible()
  await press('choices[0].message.content text', dialog)
  await dialog.waitFor({ state: 'detached' })
  await list.getByRole('row', { name: /speech.*write/ }).waitFor()

  // What appears after a press has the focus, and the settings are reached with Tab from there.
  const hasFocus = (name: string) =>
    expect.poll(() => page.evaluate<string>('document.activeElement.textContent')).toBe(name)
  await press('Duplicate node')
  await hasFocus('Node speech2')
  await list.getByRole('row', { name: /speech2.*write/ }).waitFor()
  await page.getByLabel('Id', { exact: true }).fill('spare')
  await page.keyboard.press('Tab')
  await hasFocus('Node spare')
  await press('Limits, retries, cache and condition')
  // Past the outputs and the help of both fields.
  for (let tabs = 0; tabs < 4; tabs++) await page.keyboard.press('Tab')
  await page.keyboard.type('2')
  await expect.poll(() => page.getByLabel('Retries after a failure').inputValue()).toBe('2')
  await page.getByLabel('Wait between attempts').waitFor()
  await press('Delete node')
  await hasFocus('Workflow')
  await list.getByRole('row', { name: /spare/ }).waitFor({ state: 'detached' })
  await list.getByRole('button', { name: 'speech' }).focus()
  await page.keyboard.press('Enter')
  await hasFocus('Node speech')
  await press('Limits, retries, cache and condition')
  await page.getByLabel('Retries after a failure').focus()
  await page.keyboard.type('1')
  await page.keyboard.press('Enter')
  await page.getByLabel('Time limit of an attempt').fill('20')
  await page.getByLabel('Budget of the node').fill('0.5')
  await opened.expectAccessible()

  // A budget that is none is refused at its field.
  opened.expectErrors(/400/)
  await press('Close properties of the node')
  const budget = page.getByLabel('Budget of an execution')
  await budget.fill('cheap')
  await expect.poll(() => budget.getAttribute('aria-invalid')).toBe('true')
  await budget.fill('2.50')
  await expect.poll(() => budget.getAttribute('aria-invalid')).toBe(null)
  await press('Save')
  await page.getByText('Saved as version 2.').waitFor()
  const { workflow } = await console.call<{ workflow: object }>(`/api/workflows/${id}`)
  const speech = {
    inputs: { input: '${nodes.write.result.choices[0].message.content}' },
    retries: { max: 1 },
    timeout: 20,
    budget: 0.5,
  }
  expect(workflow).toMatchObject({ budget: 2.5, dag: { nodes: { speech } } })
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('a frame groups nodes: it is written in, moves with them, is stored, and is removed by keyboard', async () => {
  const { paint } = story.dag.nodes
  const id = await stored({
    name: 'Framed',
    dag: {
      nodes: {
        image: { ...paint, inputs: { prompt: 'a' }, position: { x: 0, y: 0 } },
        other: { ...paint, inputs: { prompt: 'b' }, position: { x: 400, y: 0 } },
      },
      frames: [{ text: 'Pictures', position: { x: -40, y: -80 }, size: { width: 340, height: 600 } }],
    },
  })
  await using opened = await console.open(`/workflows/${id}`, { size: desktop })
  const { page } = opened
  const frame = page.locator('.react-flow__node-frame').filter({ hasText: 'Pictures' })
  await frame.waitFor()
  const node = (name: string) => page.locator(`.react-flow__node[data-id="${name}"]`)
  const boxes = async () => [
    await frame.boundingBox(),
    await node('image').boundingBox(),
    await node('other').boundingBox(),
  ]
  const before = await boxes()
  const begin = before[0]!
  await page.mouse.move(begin.x + begin.width - 30, begin.y + 12)
  await page.mouse.down()
  await page.mouse.move(begin.x + begin.width + 10, begin.y + 72, { steps: 4 })
  await page.mouse.up()
  const after = await boxes()
  const [shift, own, none] = after.map((box, at) => [box!.x - before[at]!.x, box!.y - before[at]!.y].map(Math.round))
  expect(shift![0]).toBeGreaterThan(20)
  expect([own, none]).toEqual([shift, [0, 0]])
  // It is selected: its text can be changed.
  await page.getByRole('textbox', { name: 'Text of the frame' }).fill('Two\npictures')
  await opened.expectAccessible()
  await opened.screenshot('workflow-frame')
  // Arranged, it is around its node again, and not around the other one.
  await button(page, 'Arrange nodes automatically').click()
  await button(page, 'Save').click()
  await page.getByText('Saved as version 2.').waitFor()
  type Place = { position: { x: number; y: number } }
  const { dag } = (
    await console.call<{
      workflow: {
        dag: { frames: (Place & { size: { width: number; height: number } })[]; nodes: Record<string, Place> }
      }
    }>(`/api/workflows/${id}`)
  ).workflow
  const [{ position: corner, size }] = dag.frames as [(typeof dag.frames)[0]]
  const isInside = ({ position: { x, y } }: Place) =>
    x > corner.x && x < corner.x + size.width && y > corner.y && y < corner.y + size.height
  expect([isInside(dag.nodes.image!), isInside(dag.nodes.other!), size.width < 340]).toEqual([true, false, true])
  await button(page, 'Add a frame').click()
  await expect.poll(() => page.locator('.react-flow__node-frame').count()).toBe(2)
  await button(page, 'Save').click()
  await page.getByText('Saved as version 3.').waitFor()
  const { workflow } = await console.call<{
    workflow: { dag: { frames: { text: string }[]; nodes: typeof story.dag.nodes } }
  }>(`/api/workflows/${id}`)
  expect(workflow.dag.frames.map(({ text }) => text)).toEqual(['Two\npictures', ''])
  await page.locator('.react-flow__node-frame').nth(1).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Delete')
  await expect.poll(() => page.locator('.react-flow__node-frame').count()).toBe(1)
})

test('a run that cannot be read at first is read again, and its image drags the card', async () => {
  const id = await stored({ name: 'Again' })
  await using opened = await console.open('/models', { size: desktop })
  const { page } = opened
  opened.expectErrors(/503/)
  // Without events only the repeated reading sees how the run goes on.
  await page.route('**/api/events', route => route.fulfill({ contentType: 'text/event-stream', body: '' }))
  let refused = 0
  await page.route('**/api/workflow-executions/*', async route => {
    if (refused++ > 0) return route.continue()
    await route.fulfill({ status: 503, json: { error: { message: 'Not now.', code: 'overloaded' } } })
  })
  await page.goto(`/console/workflows/${id}?run`)
  await button(page.getByRole('dialog', { name: 'Run workflow' }), 'Run now').click()
  const panel = page.getByRole('tabpanel', { name: 'Run' })
  await panel.getByText('Not now.').waitFor()
  await panel.getByRole('img', { name: 'Image of paint' }).waitFor()
  const image = page.locator('.react-flow__node').getByRole('img', { name: 'Image of paint' })
  const before = (await image.boundingBox())!
  await image.hover()
  await page.mouse.down()
  await page.mouse.move(before.x - 60, before.y + 20, { steps: 5 })
  await page.mouse.up()
  await expect.poll(async () => (await image.boundingBox())!.x).toBeLessThan(before.x - 20)
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { tinyChat } from '../../bin/tiny-chat.ts'
import { openHub } from '../fixtures/hub.ts'
import { openConsole, sizes, type TestConsole } from './_console.ts'

const model = 'infer/tiny-chat'

let hub: Awaited<ReturnType<typeof openHub>>
let console: TestConsole
beforeAll(async () => {
  hub = await openHub({ 'Owner/Tiny-GGUF': { files: { 'tiny-Q4_K_M.gguf': tinyChat() } } })
  // Downloads need programs of util-linux.
  console = await openConsole(undefined, { HF_ENDPOINT: hub.endpoint, PATH: process.env.PATH ?? '' })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  await hub?.close()
})

test.each(sizes)('on %s a person finds a model, tests it, and reads its log and settings', async (_, size) => {
  await using opened = await console.open('/models', { size })
  const { page } = opened
  const table = page.getByRole('table', { name: 'Configured' })
  await table.getByRole('link', { name: 'infer/tiny-embed' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('models')
  await page.keyboard.press('/')
  await page.keyboard.type('chat')
  await expect.poll(() => table.getByRole('link').count()).toBe(1)
  await table.getByRole('link', { name: model }).click()
  await page.getByRole('heading', { level: 1, name: model }).waitFor()
  await page.getByRole('button', { name: `Test ${model}` }).click()
  await page.getByText(/It answered in .*: Hello!/).waitFor()
  await page.getByText('2,048 tokens').waitFor()
  await page.getByRole('table', { name: 'Engines' }).getByText('Ready').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('model')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await page.getByRole('tab', { name: 'Log' }).click()
  const log = page.getByRole('log')
  await log.getByText('The model is sized').first().waitFor()
  // Further lines come live.
  const starts = await log.getByText('Engine ready').count()
  await page.getByRole('button', { name: `Unload ${model}` }).click()
  await page.getByRole('button', { name: `Load ${model}` }).click()
  await expect.poll(() => log.getByText('Engine ready').count()).toBe(starts + 1)
  await page.getByLabel('Filter lines').fill('nothing has this text')
  await log.getByText('No line has this text.').waitFor()
  await opened.expectAccessible()
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByRole('table', { name: 'Settings' }).getByText('context_length').waitFor()
  await opened.expectAccessible()
  await page.getByRole('tab', { name: 'Plan' }).click()
  await page.getByText('Served at once').waitFor()
  await page
    .getByRole('region', { name: 'Figures' })
    .getByText(/measured|estimated|configured/)
    .first()
    .waitFor()
  await opened.expectAccessible()
  await page.getByRole('tab', { name: 'About' }).click()
  const loads = page.getByRole('table', { name: 'Loads' })
  await loads.getByText('Runs', { exact: true }).waitFor()
  await loads.getByText('Ended', { exact: true }).first().waitFor()
})

test('the test of an image model shows what it made', async () => {
  await using opened = await console.open('/models/details/infer/demo')
  const { page } = opened
  await page.getByRole('button', { name: 'Test infer/demo' }).click()
  await page.getByText(/It answered in/).waitFor()
  await page.getByRole('img', { name: /A red ball/ }).waitFor()
  await opened.expectAccessible()
})

test('the button of the test is there before the tasks are, and cannot be pressed yet', async () => {
  await using opened = await console.open('/models')
  const { page } = opened
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/api/tasks', async route => {
    await released
    await route.continue()
  })
  await page.getByRole('table', { name: 'Configured' }).getByRole('link', { name: model }).click()
  const button = page.getByRole('button', { name: `Test ${model}` })
  expect(await button.getAttribute('aria-busy')).toBe('true')
  release()
  await expect.poll(() => button.getAttribute('aria-busy')).toBeNull()
})

test('a model that does not exist is said so, with its name', async () => {
  await using opened = await console.open('/models/details/nobody/nothing')
  await opened.page.getByText('There is no model nobody/nothing here').waitFor()
})

test('a token of readers sees state and price, and no engine, log or settings', async () => {
  const token = await console.token(['user:read'])
  await using opened = await console.open(`/models/details/${model}`, { token })
  const { page } = opened
  await page.getByText('Engines, settings and the log are for tokens').waitFor()
  expect(await page.getByRole('tab').allTextContents()).toEqual(['About', 'Plan'])
  expect(await page.getByRole('button', { name: /^(Load|Unload|Test) / }).count()).toBe(0)
  expect(await page.getByRole('link', { name: /playground|try this model/i }).count()).toBe(0)
})

const minutes = { timeout: 150_000 }
test(
  'a person looks a model up, sees the lines before they are written, adds it, tests it and removes it',
  minutes,
  async () => {
    await using opened = await console.open('/models/catalog')
    const { page } = opened
    const catalog = page.getByRole('table', { name: 'Catalogue' })
    await catalog.getByText('On the processor').first().waitFor()
    await opened.expectAccessible()
    await opened.screenshot('model-catalog')
    // `infer model add starter` names it so.
    await page.getByLabel('Search the catalogue').fill('starter')
    await catalog.getByText('smollm2-135m, also starter').waitFor()
    await page.getByLabel('Search the catalogue').fill('no model is called so')
    await page.getByText('No model of the catalogue matches').waitFor()

    await page.getByRole('button', { name: 'Add model' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add a model' })
    await dialog.getByLabel('Model', { exact: true }).fill('hf:Owner/Nothing')
    await dialog.getByRole('button', { name: 'Show what is written' }).click()
    await dialog.getByRole('alert').getByText('Owner/Nothing').waitFor()
    await dialog.getByLabel('Model', { exact: true }).fill('hf:Owner/Tiny-GGUF')
    await dialog.getByText('More settings').click()
    await dialog.getByLabel('Id').fill('team/mine')
    await dialog.getByRole('button', { name: 'Show what is written' }).click()
    await dialog.getByRole('group', { name: 'Lines of infer.yaml' }).getByText('id: team/mine').waitFor()
    await opened.expectAccessible()
    await opened.screenshot('model-add')
    await dialog.getByRole('button', { name: 'Download and add' }).click()

    const downloads = page.getByRole('list', { name: 'Downloads' })
    await downloads.getByText('Added', { exact: true }).waitFor()
    await opened.expectAccessible()
    await downloads.getByRole('link', { name: 'Open model' }).click()
    await page.getByRole('button', { name: 'Test team/mine' }).click()
    await page.getByText(/It answered in .*: Hello!/).waitFor()

    await page.getByRole('button', { name: 'Remove team/mine' }).click()
    const removal = page.getByRole('dialog', { name: 'Remove team/mine' })
    await removal.getByText('id: team/mine').waitFor()
    await opened.expectAccessible()
    await removal.getByRole('button', { name: 'Remove model' }).click()
    await page.getByText('The model team/mine is removed.').waitFor()
    await expect.poll(() => page.getByRole('link', { name: 'team/mine' }).count()).toBe(0)
    opened.expectErrors(/404|400|502|504/)
  },
)

import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

const model = 'infer/tiny-chat'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(sizes)('on %s a person loads a model, sees its engine and unloads it', async (_, size) => {
  await using opened = await console.open('/', { size })
  const { page } = opened
  const engines = page.getByRole('list', { name: /^Engines on/ })
  await page.getByRole('button', { name: `Load ${model}` }).click()
  await engines.getByText(model).waitFor()
  await engines.getByText(/0 of \d+ slots busy/).waitFor()
  await page.getByText(/reserved for engines/).waitFor()
  const row = page.getByRole('table', { name: 'Models and queues' }).getByRole('row').filter({ hasText: model })
  await row.getByText('Loaded', { exact: true }).waitFor()
  await page
    .getByRole('img', { name: /^Requests per second: .* at most in the last hour$/ })
    .locator('canvas')
    .waitFor()
  await opened.expectAccessible()
  await opened.screenshot('overview')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await engines.getByRole('link', { name: `Log of ${model}` }).click()
  await page.getByRole('log').getByText('Engine ready').first().waitFor()
  await page.goBack()
  await engines.getByRole('button', { name: `Unload ${model}` }).click()
  await page.getByText('No engine is loaded here.').waitFor()
})

test('a person sees why requests wait, and at once what has failed', async () => {
  await using opened = await console.open('/')
  const { page } = opened
  await page.getByText('No job or request has failed').waitFor()
  const long = [{ role: 'user', content: 'x '.repeat(9_000) }]
  await console.call('/api/jobs', { task: 'std/chat-completion', model_id: model, inputs: { messages: long } })
  const failures = page.getByRole('table', { name: 'Last failures' })
  await failures.getByText(/context length/).waitFor()
  expect(await failures.getByRole('link', { name: 'Chat', exact: true }).getAttribute('href')).toMatch(
    /^\/console\/jobs\/job_/,
  )
  const image = { prompt: 'A cat', width: 1024, height: 1024, num_inference_steps: 20 }
  for (let sent = 0; sent < 20; sent++)
    await console.call('/api/jobs', { task: 'slug/text-to-image', model_id: 'infer/demo', inputs: image })
  const row = page.getByRole('table', { name: 'Models and queues' }).getByRole('row').filter({ hasText: 'infer/demo' })
  await row.getByText(/\d+ waits?/).waitFor()
  await row.getByText(/being loaded|not loaded yet|slots? of .* busy/).waitFor()
})

test('who does not own the machine sees the models, and is offered nothing that is refused', async () => {
  const token = await console.token(['user:read'])
  await using opened = await console.open('/', { token })
  const { page } = opened
  await page.getByRole('table', { name: 'Models and queues' }).getByRole('link', { name: model }).waitFor()
  await page.getByText('Devices and engines are shown to tokens of the organization').waitFor()
  expect(await page.getByRole('button', { name: /^(Load|Unload) / }).count()).toBe(0)
  await opened.expectAccessible()
})

test('as long as only the included models are there, an image and a workflow are one click away', async () => {
  await using opened = await console.open('/')
  const { page } = opened
  const steps = page.getByRole('region', { name: 'First steps' })
  await steps.getByRole('button', { name: /^Add a real model/ }).waitFor()
  await steps.getByRole('button', { name: /^Make an image/ }).click()
  await page.getByRole('region', { name: 'Result' }).getByRole('img').first().waitFor()
  await page.getByRole('link', { name: 'Overview' }).click()
  await steps.getByRole('button', { name: /^Run a workflow/ }).click()
  await page.getByText('First workflow').first().waitFor()
  await page.getByText('3 of 3 nodes completed').waitFor()
})

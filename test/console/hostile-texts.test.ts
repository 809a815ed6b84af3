import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsolePage, openConsole, type TestConsole } from './_console.ts'

/** Texts that would run as a script if a page took them for markup. `at` says where each comes from. */
const hostile = (at: string) =>
  `${at} <img src=x onerror="window.attacked='${at}'"><script>window.attacked='${at}'</script>`

let console: TestConsole
beforeAll(async () => {
  const broken = {
    id: 'broken',
    engine: 'custom',
    command: ['/bin/sh', '-c', `echo "$0" >&2; exit 3`, hostile('engine log'), '{port}'],
    tasks: ['std/chat-completion'],
    memory: '64MiB',
  }
  console = await openConsole({ models: [broken], toys: true })
})
afterAll(() => console?.[Symbol.asyncDispose]())

/** Fails if a text was run, or made an element of the page. */
async function expectHarmless({ page }: ConsolePage): Promise<void> {
  expect(await page.evaluate('window.attacked ?? document.querySelectorAll("img[src=x]").length')).toBe(0)
}

test('an engine that crashes is a failure, and the log of the server says which', async () => {
  await using opened = await console.open('/')
  const { page } = opened
  await page.getByText('No job or request has failed').waitFor()
  const load = await console.server.fetch('/api/models/broken/load?wait=30', { method: 'POST', body: {} })
  expect(load.ok, await load.text()).toBe(false)
  const failures = page.getByRole('region', { name: 'Last failures' })
  await failures.getByText(/its engine failed (once|\d+ times) since the server started/).waitFor()
  expect(await page.getByText('No job or request has failed').count()).toBe(0)
  // An engine that fails again and again needs attention, and the navigation and the title say so.
  for (let more = 0; more < 2; more++) {
    const again = await console.server.fetch('/api/models/broken/load?wait=30', { method: 'POST', body: {} })
    expect(again.ok, await again.text()).toBe(false)
  }
  await page.reload()
  const attention = page.getByRole('region', { name: 'Needs attention' })
  await attention.getByText(/The engine of broken failed/).waitFor()
  await attention.getByText(/engine log/).waitFor()
  await page.getByRole('link', { name: /^Overview 1 thing needs attention/ }).waitFor()
  await expect.poll(() => page.title()).toBe('(1) Overview · infer')
  await opened.expectAccessible()
  await opened.screenshot('attention')
  await attention.getByRole('link', { name: 'Open log' }).click()
  await page.getByRole('log').getByText('engine log').first().waitFor()
  await page.goBack()
  // It is said once.
  await attention.waitFor()
  expect(await failures.getByText('broken').count()).toBe(0)
  await attention.getByRole('link', { name: 'Open log' }).click()
  await page.getByRole('log').getByText('engine log').first().waitFor()
  expect(await page.title()).toBe('(1) broken · Models · infer')
  await page.goto('/console/system/log')
  await page
    .getByRole('log')
    .getByText(/model=broken/)
    .first()
    .waitFor()
})

test('metadata of a job is text', async () => {
  const { id } = await console.call<{ id: string }>('/api/jobs', {
    task: 'slug/text-to-image',
    model_id: 'infer/demo',
    inputs: { prompt: 'a boat', width: 64, height: 64 },
    metadata: { note: hostile('metadata'), [hostile('key').slice(0, 60)]: 'x' },
  })
  await using opened = await console.open(`/jobs/${id}`)
  await opened.page.getByText(hostile('metadata')).waitFor()
  await opened.page.getByText(hostile('key').slice(0, 60)).waitFor()
  await expectHarmless(opened)
})

test('what a model answers is text: in the conversation, in its job and in a node', async () => {
  // The toys repeat what they are given: the transcription what was spoken, the image its prompt.
  const answer = hostile('model output')
  const spoken = await console.call<{ id: string }>('/api/jobs', {
    task: 'std/audio-speech',
    model_id: 'infer/tiny-speech',
    inputs: { input: answer, response_format: 'wav' },
  })
  const { result } = await console.call<{ result: { audio_url: string } }>(`/api/jobs/${spoken.id}?wait=60`)
  const heard = await console.call<{ id: string }>('/api/jobs', {
    task: 'std/audio-transcription',
    model_id: 'infer/tiny-transcription',
    inputs: { url: result.audio_url },
  })
  await console.call(`/api/jobs/${heard.id}?wait=60`)
  await using opened = await console.open(`/jobs/${heard.id}`)
  await opened.page.getByText(answer).first().waitFor()
  await expectHarmless(opened)
})

test('what an engine writes to its log is text: in the log, in the loads and in the failure', async () => {
  await using opened = await console.open('/models/details/broken?part=log')
  const { page } = opened
  opened.expectErrors(/503/)
  await page.getByRole('button', { name: 'Load broken' }).click()
  await page
    .getByRole('log')
    .getByText("<script>window.attacked='engine log'</script>", { exact: false })
    .first()
    .waitFor()
  await page.getByRole('tab', { name: 'About' }).click()
  await page.getByRole('table', { name: 'Loads' }).getByText('Failed', { exact: true }).first().waitFor()
  await expectHarmless(opened)
})

test('the name of a file is text, and a file of markup is never shown as a page', async () => {
  const name = `${hostile('file name').replaceAll('/', '')}.html`
  await using opened = await console.open('/playground?task=std/audio-transcription')
  const { page } = opened
  opened.expectErrors(/400/)
  const file = { name, mimeType: 'text/html', buffer: Buffer.from(hostile('file')) }
  await page.locator('input[type=file]').first().setInputFiles(file)
  const field = page.getByPlaceholder('or its address or id')
  await expect.poll(() => field.inputValue()).toMatch(/^file-/)
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('alert').first().waitFor()
  await expectHarmless(opened)
  // Opened by its address in the same browser, with the cookie: a download at most.
  const answer = await opened.context.request.get(`/std/v1/files/${await field.inputValue()}/content`, {
    headers: { authorization: `Bearer ${console.secret}` },
  })
  const headers = answer.headers()
  expect(headers['x-content-type-options']).toBe('nosniff')
  expect(headers['content-type']).not.toContain('html')
})

test('names and descriptions of workflows, organizations and tokens are text', async () => {
  const name = hostile('name').slice(0, 120)
  const { workflow } = await console.call<{ workflow: { id: string } }>('/api/workflows', {
    name,
    description: hostile('description'),
    dag: {
      nodes: {
        a: {
          name: hostile('node').slice(0, 120),
          model_id: 'infer/tiny-chat',
          task: 'std/completion',
          inputs: { prompt: hostile('prompt'), max_tokens: 2 },
        },
      },
    },
  })
  const { organization } = await console.call<{ organization: { id: string } }>('/api/organizations', { name })
  await console.call(`/api/organizations/${organization.id}/tokens`, { name, scopes: ['user:read'] })
  await using opened = await console.open('/workflows')
  const { page } = opened
  await page.getByText(hostile('description')).waitFor()
  await expectHarmless(opened)
  await page.getByRole('link', { name }).click()
  await page.locator('.react-flow__node').getByText(hostile('node').slice(0, 40)).waitFor()
  await expectHarmless(opened)
  await page.goto(`/console/workflows/${workflow.id}/versions`)
  await page.getByRole('heading', { name: `Versions of ${name}` }).waitFor()
  await page.goto(`/console/organizations/${organization.id}`)
  await page.getByRole('heading', { level: 1, name }).waitFor()
  await page.getByRole('table', { name: 'Tokens' }).getByText(name).waitFor()
  await expectHarmless(opened)
})

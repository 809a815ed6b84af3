import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { ConsolePage, TestConsole } from './_console.ts'
import { story } from './_story.ts'

/** What a person does with a page, counted: presses of the mouse button, and of keys. */
export interface Hand {
  page: Page
  clicks: number
  keys: number
  click(what: Locator): Promise<void>
  /** Clicks a field and types. */
  type(what: Locator, text: string): Promise<void>
  /** Clicks a field and pastes: two keys. */
  paste(what: Locator, text: string): Promise<void>
  press(key: string): Promise<void>
  /** Chooses in a select of the browser: a click on it and one on the option. */
  select(what: Locator, option: string): Promise<void>
  /** Drags to a place near the lower left corner of `onto`: one press. */
  drag(what: Locator, onto: Locator): Promise<void>
}

function openHand(page: Page): Hand {
  const hand: Hand = {
    page,
    clicks: 0,
    keys: 0,
    async click(what) {
      hand.clicks++
      await what.click()
    },
    async type(what, text) {
      hand.clicks++
      hand.keys += text.length
      await what.click()
      await what.selectText()
      // By real keys: Firefox gets the text of `fill` as a change that React does not see.
      await what.pressSequentially(text)
    },
    async paste(what, text) {
      hand.clicks++
      hand.keys += 2
      await what.click()
      await what.fill(text)
    },
    async press(key) {
      hand.keys += key.split('+').length
      await page.keyboard.press(key)
    },
    async select(what, option) {
      hand.clicks += 2
      await what.selectOption(option)
    },
    async drag(what, onto) {
      hand.clicks++
      await what.hover()
      await page.mouse.down()
      const { x, y, height } = (await onto.boundingBox())!
      await page.mouse.move(x + 200, y + height - 100, { steps: 5 })
      await page.mouse.up()
    },
  }
  return hand
}

export type Role = 'chat' | 'creator' | 'builder' | 'operator' | 'administrator'

/** What a person of a role wants, from the first page of the console until it is there. */
export interface Walk {
  role: Role
  task: string
  /** Begins at the page for signing in. */
  signedOut?: true
  /** Makes what was there before. */
  before?(console: TestConsole, page: Page): Promise<void>
  walk(hand: Hand, console: TestConsole): Promise<void>
}

const button = (within: Page | Locator, name: string | RegExp) =>
  within.getByRole('button', { name, ...(typeof name === 'string' && { exact: true }) })
const link = (within: Page | Locator, name: string) => within.getByRole('link', { name, exact: true })
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
const rowOf = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

const image = (prompt: string, more: object = {}) => ({
  task: 'slug/text-to-image',
  model: 'infer/demo',
  inputs: { prompt, width: 64, height: 64 },
  ...more,
})

export async function ask(hand: Hand, words: string): Promise<void> {
  await hand.type(hand.page.getByRole('textbox', { name: 'Message' }), words)
  await hand.press('Enter')
  await hand.page
    .getByRole('article', { name: 'infer/tiny-chat' })
    .last()
    .getByText(/tokens out/)
    .waitFor()
}

/** The main walks. Both browsers go them, and test/bench/clicks.ts counts what each takes. */
export const walks: readonly Walk[] = [
  {
    role: 'chat',
    task: 'Sign in with a token and get an answer of a model',
    signedOut: true,
    async walk(hand, { secret }) {
      await hand.paste(hand.page.getByLabel('API token'), secret)
      await hand.click(button(hand.page, 'Sign in'))
      await hand.click(link(hand.page, 'Chat'))
      await ask(hand, 'Hello')
    },
  },
  {
    role: 'chat',
    task: 'Find an earlier conversation and ask further',
    async before(_, page) {
      await link(page, 'Chat').click()
      await ask(openHand(page), 'Tell me about whales')
      await page.getByRole('link', { name: 'Tell me about whales' }).first().waitFor()
      await link(page, 'Overview').click()
    },
    async walk(hand) {
      await hand.click(link(hand.page, 'Chat'))
      await hand.click(hand.page.getByRole('link', { name: 'Tell me about whales' }).first())
      await ask(hand, 'And dolphins?')
      await hand.page
        .getByRole('article', { name: 'infer/tiny-chat' })
        .nth(1)
        .getByText(/tokens out/)
        .waitFor()
    },
  },
  {
    role: 'creator',
    task: 'Make an image of a prompt and open it in the library',
    async walk(hand) {
      await hand.click(link(hand.page, 'Playground'))
      await hand.click(hand.page.getByLabel('Task', { exact: true }))
      await hand.click(
        hand.page.getByRole('option').filter({ has: hand.page.getByText('Text to image', { exact: true }) }),
      )
      await hand.type(hand.page.getByLabel('Prompt', { exact: true }), 'a lighthouse')
      await hand.press('Control+Enter')
      const run = hand.page.getByRole('article').filter({ hasText: 'a lighthouse' })
      await run.getByRole('img', { name: 'Image 1: a lighthouse' }).waitFor()
      await hand.click(link(run, 'Open in library'))
      await hand.page.getByRole('dialog').getByRole('img', { name: 'a lighthouse' }).waitFor()
    },
  },
  {
    role: 'creator',
    task: 'Find an earlier image and make it again',
    async before(console) {
      const { id } = await console.call<{ id: string }>('/api/jobs', image('a red boat'))
      await console.call(`/api/jobs/${id}?wait=60`)
    },
    async walk(hand) {
      await hand.click(link(hand.page, 'Jobs'))
      await hand.click(hand.page.getByRole('link', { name: 'a red boat' }).first())
      await hand.click(button(hand.page, 'Run again'))
      await hand.page.getByText('The job was submitted again.').waitFor()
    },
  },
  {
    role: 'builder',
    task: 'Build a workflow that writes and paints, and run it',
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Workflows'))
      await hand.click(page.getByRole('link', { name: 'New workflow' }).first())
      for (const task of [/^Chat/, /^Text to image/]) {
        await hand.click(page.getByRole('button', { name: 'Add node' }).first())
        await hand.click(button(page.getByRole('dialog', { name: 'Add a node' }), task))
      }
      await hand.click(button(page, 'Take prompt from a parameter or another node'))
      const from = page.getByRole('dialog', { name: 'Where does prompt come from?' })
      await hand.click(button(from.getByRole('region', { name: 'Result of chat' }), /content/).first())
      await page.locator('.react-flow__edge').first().waitFor({ state: 'attached' })
      await saveAndRun(hand)
    },
  },
  {
    role: 'builder',
    task: 'Run a workflow as a form and see what it made',
    before: async console => void (await console.call('/api/workflows', { ...story, name: 'Painted story' })),
    async walk(hand) {
      await hand.click(link(hand.page, 'Workflows'))
      await hand.click(button(rowOf(hand.page, 'Painted story'), /form/i))
      await hand.type(hand.page.getByLabel('Topic'), 'birds')
      await hand.click(button(hand.page, 'Run'))
      await hand.page.getByRole('region', { name: 'Result of paint' }).getByRole('img').waitFor()
    },
  },
  {
    role: 'operator',
    task: 'Load a model, read the log of its engine and unload it',
    async before(console) {
      await console.call('/api/models/infer/tiny-embed/unload?wait=30', {})
    },
    async walk(hand) {
      const engines = hand.page.getByRole('list', { name: /^Engines on/ })
      await hand.click(button(hand.page, 'Load infer/tiny-embed'))
      await engines.getByText('infer/tiny-embed').waitFor()
      await hand.click(link(engines, 'Log of infer/tiny-embed'))
      await hand.page.getByRole('log').getByText('Engine ready').first().waitFor()
      await hand.click(link(hand.page, 'Overview'))
      await hand.click(button(engines, 'Unload infer/tiny-embed'))
      await engines.getByText('infer/tiny-embed').waitFor({ state: 'detached' })
    },
  },
  {
    role: 'operator',
    task: 'See why a job waits and cancel it',
    async before(console) {
      await console.call('/api/jobs', image('tomorrow', { not_before: Math.floor(Date.now() / 1_000) + 3_600 }))
    },
    async walk(hand) {
      await hand.click(link(hand.page, 'Jobs'))
      await hand.select(hand.page.getByLabel('State'), 'pending')
      await hand.click(hand.page.getByRole('link', { name: 'tomorrow' }).first())
      await hand.page.getByRole('region', { name: 'Job', exact: true }).getByText('Why it waits').waitFor()
      await hand.click(button(hand.page, 'Cancel job'))
      await hand.page.getByText('The job is cancelled.').waitFor()
    },
  },
  {
    role: 'operator',
    task: 'Find why an execution failed and run it again from there',
    async before(console) {
      const node = (prompt: string) => ({ model_id: 'infer/demo', task: 'slug/text-to-image', inputs: { prompt } })
      const nodes = { first: node('a'), second: node('${nodes.first.result.images[5].url}') }
      const { execution } = await console.call<{ execution: { id: string } }>('/api/workflows/run', {
        dag: { nodes, edges: [] },
      })
      await console.call(`/api/workflow-executions/${execution.id}?wait=60`)
    },
    async walk(hand) {
      await hand.click(link(hand.page, 'Executions'))
      await hand.click(hand.page.getByRole('row').nth(1).getByRole('link').first())
      await hand.click(button(hand.page, 'Failed at the node second'))
      const detail = hand.page.getByRole('region', { name: 'Node second' })
      await detail.getByRole('alert').waitFor()
      await hand.click(button(detail, 'Run again from this node'))
      await hand.page.getByText('A new execution has begun.').waitFor()
    },
  },
  {
    role: 'administrator',
    task: 'Create a token with a budget, and revoke it',
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Organizations'))
      await hand.click(link(page, 'default'))
      await hand.click(button(page, 'Create token'))
      const form = page.getByRole('dialog', { name: 'Create token for default' })
      await hand.type(form.getByLabel('Name', { exact: true }), 'anna')
      await hand.type(form.getByLabel('Spending per month'), '25')
      await hand.click(button(form, 'Create token'))
      const secret = page.getByRole('dialog', { name: 'Secret of anna' })
      expect(await secret.getByLabel('Secret', { exact: true }).inputValue()).toMatch(/^sk-infer-/)
      await hand.click(button(secret, 'I have copied it'))
      await rowOf(page, 'anna').getByText('25.00 USD per month').waitFor()
      await hand.click(button(page, 'Revoke anna'))
      await hand.click(button(page.getByRole('dialog', { name: 'Revoke anna?' }), 'Revoke token'))
      await rowOf(page, 'anna').waitFor({ state: 'detached' })
    },
  },
  {
    role: 'administrator',
    task: 'See what was used by each token',
    async before(console) {
      await console.call('/std/v1/embeddings', { model: 'infer/tiny-embed', input: ['a cat'] })
    },
    async walk(hand) {
      await hand.click(link(hand.page, 'Usage'))
      await hand.select(hand.page.getByLabel('By', { exact: true }), 'Token')
      await hand.page.getByRole('table', { name: 'Usage by token' }).getByText('root').waitFor()
    },
  },
  {
    role: 'administrator',
    task: 'Create an organization and limit what it spends',
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Organizations'))
      await hand.click(button(page, 'Create organization'))
      const form = page.getByRole('dialog')
      await hand.type(form.getByLabel('Name', { exact: true }), 'guests')
      await hand.click(button(form, 'Create organization'))
      await heading(page, 'guests')
      await hand.click(link(page, 'Usage'))
      await hand.click(page.getByLabel('Organization', { exact: true }))
      await hand.click(page.getByRole('option', { name: 'guests' }))
      await hand.click(button(page, 'Change limits'))
      const limits = page.getByRole('dialog', { name: 'Change limits of guests' })
      await hand.type(limits.getByLabel('Spending per month'), '50')
      await hand.click(button(limits, 'Save limits'))
      await page.getByText('50.00 USD').first().waitFor()
    },
  },
]

/** Saves the workflow of the editor, runs it, and waits for the image that its node `image` makes. */
export async function saveAndRun(hand: Hand): Promise<void> {
  const { page } = hand
  await hand.click(button(page, 'Save'))
  await page.getByText('Saved as version 1.').waitFor()
  await hand.click(button(page, 'Run'))
  await hand.click(button(page.getByRole('dialog', { name: 'Run workflow' }), 'Run now'))
  await page.getByRole('tabpanel', { name: 'Run' }).getByRole('img', { name: 'Image of image' }).waitFor()
}

/** Goes a walk from the first page, and returns what it took. */
export async function go(
  way: Walk,
  opened: ConsolePage,
  console: TestConsole,
): Promise<{ clicks: number; keys: number; seconds: number }> {
  await way.before?.(console, opened.page)
  const hand = openHand(opened.page)
  const began = performance.now()
  await way.walk(hand, console)
  return { clicks: hand.clicks, keys: hand.keys, seconds: (performance.now() - began) / 1_000 }
}

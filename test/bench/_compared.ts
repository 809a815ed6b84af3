import type { Page } from 'playwright-core'
import { ask, saveAndRun, type Walk, walks } from '../console/_walks.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true })
const answer = (page: Page, model: string) =>
  page
    .getByRole('article', { name: model })
    .getByText(/tokens out/)
    .first()

/** Browsers ask people nothing here; the one without windows refuses. */
const mayCopy = (page: Page) => page.context().grantPermissions(['clipboard-write'])

/** The one of the main walks with this task. */
function walkOf(task: string): Walk {
  const walk = walks.find(one => one.task === task)
  if (!walk) throw new Error(`No walk of test/console/_walks.ts has the task "${task}".`)
  return walk
}

/** Twelve tasks that people have in other programs too: RESULTS.md says what they take there. They need the model `writer`. */
export const compared: readonly Walk[] = [
  walkOf('Sign in with a token and get an answer of a model'),
  {
    role: 'chat',
    task: 'Get an answer, and one of another model to the same question',
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Chat'))
      await ask(hand, 'Hello')
      await hand.click(page.getByRole('button', { name: /^Model/ }))
      await hand.click(page.getByRole('option').filter({ hasText: 'writer' }))
      await hand.click(button(page, 'Answer again with writer'))
      await answer(page, 'writer').waitFor()
    },
  },
  {
    role: 'chat',
    task: 'Compare the answers of two models to a question',
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Chat'))
      await hand.click(button(page, 'Compare'))
      await ask(hand, 'Hello')
      await answer(page, 'writer').waitFor()
    },
  },
  walkOf('Find an earlier conversation and ask further'),
  {
    role: 'chat',
    task: 'Share an earlier conversation by a link',
    async before(console, page) {
      const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
      await console.call(`/api/organizations/${organization.id}`, { call_storage: 'content' }, 'PATCH')
      await mayCopy(page)
      await page.reload()
      await link(page, 'Chat').click()
      const message = page.getByRole('textbox', { name: 'Message' })
      await message.fill('Tell me about birds')
      await message.press('Enter')
      await page.getByRole('link', { name: 'Tell me about birds' }).first().waitFor()
      await answer(page, 'infer/tiny-chat').waitFor()
      await link(page, 'Overview').click()
    },
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Chat'))
      await hand.click(page.getByRole('link', { name: 'Tell me about birds' }).first())
      await hand.click(button(page, 'Share'))
      const dialog = page.getByRole('dialog', { name: 'Share this conversation' })
      await hand.click(dialog.getByRole('button', { name: 'Create link' }))
      await page.getByText('The link was created and copied.').waitFor()
    },
  },
  walkOf('Make an image of a prompt and open it in the library'),
  walkOf('Find an earlier image and make it again'),
  {
    role: 'builder',
    task: 'Build a workflow that writes and paints, and run it',
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Workflows'))
      await hand.click(page.getByRole('link', { name: 'New workflow' }).first())
      await hand.click(page.getByRole('button', { name: 'Add node' }).first())
      const offered = page.getByRole('dialog', { name: 'Add a node' })
      await hand.click(offered.getByRole('button', { name: /^Chat/ }))
      await hand.drag(page.getByTitle('Output choices[0].message.content'), page.getByLabel('Graph of the workflow'))
      await hand.click(page.getByRole('dialog').getByRole('button', { name: /^Text to image/ }))
      await page.locator('.react-flow__edge').first().waitFor({ state: 'attached' })
      await saveAndRun(hand)
    },
  },
  walkOf('Run a workflow as a form and see what it made'),
  {
    ...walkOf('Find why an execution failed and run it again from there'),
    task: 'Find why an execution failed and run what failed again',
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Executions'))
      await hand.click(page.getByRole('row').nth(1).getByRole('link').first())
      await page
        .getByText(/images\[5\]/)
        .first()
        .waitFor()
      await hand.click(button(page, 'Run failed nodes again'))
      await page.getByText('A new execution has begun.').waitFor()
    },
  },
  {
    role: 'administrator',
    task: 'Create a token for the API and copy its secret',
    before: (_, page) => mayCopy(page),
    async walk(hand) {
      const { page } = hand
      await hand.click(link(page, 'Organizations'))
      await hand.click(link(page, 'default'))
      await hand.click(button(page, 'Create token'))
      const form = page.getByRole('dialog', { name: 'Create token for default' })
      await hand.type(form.getByLabel('Name', { exact: true }), 'otto')
      await hand.click(form.getByRole('button', { name: 'Create token' }))
      const secret = page.getByRole('dialog', { name: 'Secret of otto' })
      await hand.click(secret.getByRole('button', { name: 'Copy secret' }))
    },
  },
  {
    role: 'administrator',
    task: 'See what was used of each model',
    async before(console) {
      await console.call('/std/v1/embeddings', { model: 'infer/tiny-embed', input: ['a cat'] })
    },
    async walk(hand) {
      await hand.click(link(hand.page, 'Usage'))
      await hand.page.getByRole('table', { name: 'Usage by model' }).getByText('infer/tiny-embed').waitFor()
    },
  },
]

import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(sizes)(
  'on %s a person chats, has the answer written again, and finds the conversation later',
  async (_, size) => {
    await using opened = await console.open('/playground', { size })
    const { page } = opened
    await page.getByLabel('System prompt').fill('Be brief.')
    const message = page.getByRole('textbox', { name: 'Message' })
    await message.fill('Hello, who are you?')
    await message.press('Enter')
    const answer = page.getByRole('article', { name: 'infer/tiny-chat' })
    await answer.getByText(/tokens out/).waitFor()
    const words = await answer.innerText()
    await opened.expectAccessible()
    await opened.screenshot('playground-chat')
    await answer.getByRole('button', { name: 'Answer again' }).click()
    await answer.getByText(/tokens out/).waitFor()
    expect((await answer.innerText()).split('\n')[1]).toBe(words.split('\n')[1])
    const code = page.getByLabel('curl', { exact: true }).and(page.locator('pre'))
    expect(await code.innerText()).toContain('"content": "Hello, who are you?"')
    await page.reload()
    await page.getByRole('article', { name: 'You' }).getByText('Hello, who are you?').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  },
)

test.each(sizes)('on %s a person makes an image, opens it in the library and repeats it', async (_, size) => {
  await using opened = await console.open('/playground?task=slug/text-to-image', { size })
  const { page } = opened
  await page.getByLabel('Prompt', { exact: true }).fill('a lighthouse at dusk')
  await page.getByLabel('Seed').fill('7')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('img', { name: 'Image 1: a lighthouse at dusk' }).waitFor()
  await page.getByText('1 image', { exact: true }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('playground-image')
  await page.getByRole('link', { name: 'Open library' }).click()
  await page.getByRole('searchbox').fill('LIGHTHOUSE dusk')
  await page.getByRole('link', { name: 'Open image: a lighthouse at dusk' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('img', { name: 'a lighthouse at dusk' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('library-item')
  await dialog.getByRole('link', { name: 'Repeat with changes' }).click()
  await expect.poll(() => page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('a lighthouse at dusk')
  expect(await page.getByLabel('Seed').inputValue()).toBe('7')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

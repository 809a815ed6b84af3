import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testWithFfmpeg } from '../_ffmpeg.ts'
import { openConsole, seldomOnPhones, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  const second = { id: 'second', engine: 'demo', tasks: ['slug/inpainting'], memory: '768MiB' }
  const config = { models: [second], toys: true }
  console = await openConsole(config)
})
afterAll(() => console?.[Symbol.asyncDispose]())

test('a chat has its own page, to which its task leads', async () => {
  await using opened = await console.open('/playground?task=std/chat-completion')
  const { page } = opened
  await page.getByRole('link', { name: 'Open chat' }).click()
  await page.getByRole('heading', { level: 1, name: 'New conversation' }).waitFor()
  await page.getByRole('button', { name: /^Model infer\/tiny-chat/ }).waitFor()
  await page.goto('/console/playground?model=infer/tiny-chat&task=std/chat-completion')
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
})

test.each(seldomOnPhones)(
  'on %s a person makes an image, opens it in the library and repeats it',
  async (name, size) => {
    await using opened = await console.open('/playground?task=slug/text-to-image', { size })
    const { page } = opened
    const words = `a lighthouse at dusk on ${name}`
    await page.getByLabel('Prompt', { exact: true }).fill(words)
    await page.getByLabel('Seed').fill('7')
    await page.getByRole('button', { name: 'Run' }).click()
    const run = page.getByRole('article').filter({ hasText: words })
    await run.getByRole('img', { name: `Image 1: ${words}` }).waitFor()
    await run.getByText(/^(waited .* · )?1 image$/).waitFor()
    await opened.expectAccessible()
    await opened.screenshot('playground-image')
    await run.getByRole('link', { name: 'Open in library' }).click()
    await page.getByRole('dialog').getByRole('img', { name: words }).waitFor()
    await page.goBack()
    await run.getByRole('link', { name: 'Open library' }).click()
    await page.getByRole('searchbox').fill(words.toUpperCase())
    await page.getByRole('link', { name: `Open image: ${words}` }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('img', { name: words }).waitFor()
    await opened.expectAccessible()
    await opened.screenshot('library-item')
    // Escape closes the question, and not the file behind it.
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Delete' }).waitFor({ state: 'detached' })
    await dialog.getByRole('link', { name: 'Repeat with changes' }).click()
    await expect.poll(() => page.getByLabel('Prompt', { exact: true }).inputValue()).toBe(words)
    expect(await page.getByLabel('Seed').inputValue()).toBe('7')
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  },
)

test('on a desktop a person compares texts, ranks documents, and reads what is wrong with a value', async () => {
  await using opened = await console.open('/playground?task=std/embeddings')
  const { page } = opened
  opened.expectErrors(/400/)
  await page.getByLabel('Input 1').fill('the cat sat on the mat')
  await page.getByRole('button', { name: 'Add text' }).click()
  await page.getByLabel('Input 2').fill('the cat sat on a mat')
  await page.getByRole('button', { name: 'Run' }).click()
  const cells = page.getByRole('table', { name: 'Similarity of the texts' }).getByRole('cell')
  await expect.poll(() => cells.allInnerTexts()).toHaveLength(5)
  const similarity = Number((await cells.allInnerTexts())[2])
  expect(similarity).toBeGreaterThan(0.5)
  expect(similarity).toBeLessThan(1)

  await page.getByLabel('Task', { exact: true }).click()
  await page.getByRole('option', { name: 'Rerank' }).waitFor()
  await opened.expectAccessible()
  await page.keyboard.press('Escape')
  await page.getByRole('listbox').waitFor({ state: 'detached' })
  await opened.choose('Task', 'Rerank')
  await page.getByLabel('Query').fill('red shoes')
  await page.getByLabel('Documents 1').fill('green hats')
  await page.getByRole('button', { name: 'Add text' }).click()
  await page.getByLabel('Documents 2').fill('red shoes of leather')
  await page.getByRole('button', { name: 'Run' }).click()
  const best = page.getByRole('table', { name: 'Documents by relevance' }).getByRole('row').nth(1)
  await best.getByText('red shoes of leather').waitFor()
  await opened.expectAccessible()

  await opened.choose('Task', 'Text to image')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByText('Fill in this field.').waitFor()
  await page.getByLabel('Prompt', { exact: true }).fill('x')
  await page.getByLabel('Seed').fill('-1')
  await page.getByRole('button', { name: 'Run' }).click()
  await expect.poll(() => page.getByLabel('Seed').getAttribute('aria-invalid')).toBe('true')
  await opened.expectAccessible()
})

test('a person paints a mask over an image, and two models replace what is under it', async () => {
  const task = 'std/image-edit'
  await using opened = await console.open(`/playground?task=${task}&model=infer/demo&with=second`)
  const { page } = opened
  const image = await sharp({ create: { width: 96, height: 64, channels: 3, background: 'teal' } })
    .png()
    .toBuffer()
  const files = page.locator('input[type=file]')
  await files.first().setInputFiles({ name: 'teal.png', mimeType: 'image/png', buffer: image })
  await page.getByRole('img', { name: 'Image: the chosen file' }).waitFor()
  await page.getByRole('button', { name: 'Draw mask' }).click()
  const canvas = page.getByRole('dialog').getByLabel('Mask over the image')
  await canvas.waitFor()
  const { x, y, width, height } = (await canvas.boundingBox())!
  await page.mouse.move(x + width / 4, y + height / 2)
  await page.mouse.down()
  await page.mouse.move(x + width / 2, y + height / 2, { steps: 4 })
  await page.mouse.up()
  await opened.expectAccessible()
  await opened.screenshot('playground-mask')
  await page.getByRole('button', { name: 'Use mask' }).click()
  await page.getByRole('img', { name: 'Mask: the chosen file' }).waitFor()
  await page.getByLabel('Prompt', { exact: true }).fill('a boat')
  await page.getByRole('button', { name: 'Run both' }).click()
  for (const name of ['infer/demo', 'second'])
    await page
      .getByRole('region', { name: `Result of ${name}` })
      .getByRole('img', { name: 'Image 1: a boat' })
      .waitFor()
  const job = await console.call<{ jobs: { id: string }[] }>(`/api/jobs?task=${task}&limit=1`)
  const { inputs } = await console.call<{ inputs: { mask: string } }>(`/api/jobs/${job.jobs[0]!.id}`)
  expect(inputs.mask).toMatch(/^file-/)
  await opened.screenshot('playground-compare')
  await page.goto(`/console/playground?job=${job.jobs[0]!.id}`)
  await expect.poll(() => page.getByPlaceholder('or its address or id').first().inputValue()).toMatch(/^file-/)
})

testWithFfmpeg('on a phone a person makes a video in two formats in one go', async () => {
  await using opened = await console.open('/playground?task=slug/text-to-video', { size: sizes[1][1] })
  const { page } = opened
  await page.getByLabel('Prompt', { exact: true }).fill('waves')
  await page.getByText('More parameters').click()
  await page.getByLabel('Frames', { exact: true }).fill('4')
  await page.getByLabel('Resolution').selectOption('480p')
  await page.getByLabel('9:16 tall').check()
  await page.getByLabel('1:1 square').check()
  await page.getByRole('button', { name: 'Run' }).click()
  await expect.poll(() => page.getByLabel('Video', { exact: true }).count()).toBe(2)
  await opened.expectAccessible()
  await opened.screenshot('playground-video')
})

test('on a phone a person turns text into audio and uses it as the input of a transcription', async () => {
  await using opened = await console.open('/playground?task=std/audio-speech', { size: sizes[1][1] })
  const { page } = opened
  await page.getByLabel('Input', { exact: true }).fill('Kept for later')
  await page.getByLabel('Response format').selectOption('wav')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('link', { name: 'Use as input' }).click()
  await expect.poll(() => page.getByLabel('Task', { exact: true }).innerText()).toBe('Transcription')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('region', { name: 'Result' }).getByText('Kept for later').waitFor()
  const address = page.getByPlaceholder('or its address or id')
  const before = await address.inputValue()
  await page.getByRole('button', { name: 'Record' }).click()
  await page.getByText('Recording: 1 s').waitFor()
  await page.getByRole('button', { name: 'Stop recording' }).click()
  await expect.poll(() => address.inputValue()).not.toBe(before)
  await page.getByRole('button', { name: 'Run' }).click()
  // The toy hears only its own tones: what matters is that the recording was decoded.
  await page.getByRole('region', { name: 'Result' }).getByText('The result has no text.').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('playground-audio')
  await page.goto('/console/library?kind=audio')
  await page.getByRole('link', { name: 'Open audio: Kept for later' }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await opened.expectAccessible()
  await page.getByRole('dialog', { name: 'Delete file' }).getByRole('button', { name: 'Delete' }).click()
  await page.getByText('The file is deleted.').waitFor()
  await page.getByText('Nothing matches').waitFor()
})

test('what a prompt says is text, and a conversation ends with the session', async () => {
  const prompt = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
  const made = await console.call<{ id: string }>('/api/jobs', {
    task: 'slug/text-to-image',
    model_id: 'infer/demo',
    inputs: { prompt, width: 64, height: 64 },
  })
  await console.call(`/api/jobs/${made.id}?wait=30`)
  await using opened = await console.open('/library')
  const { page } = opened
  await page.getByText(prompt).first().waitFor()
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.reload()
  await page.getByText(prompt).first().waitFor()
  await opened.expectAccessible()
  await opened.screenshot('library')
  await page.goto(`/console/playground?job=${made.id}`)
  await expect.poll(() => page.getByLabel('Prompt', { exact: true }).inputValue()).toBe(prompt)
  await page.goto('/console/chat')
  await page.getByRole('textbox', { name: 'Message' }).fill(prompt)
  await page.keyboard.press('Enter')
  await page.getByRole('article', { name: 'You' }).getByText(prompt).waitFor()
  const kept = () =>
    page.evaluate('Object.keys(localStorage).filter(name => name.includes("chat.conversation")).length')
  await expect.poll(kept).toBe(1)
  // Another tab ends with it, and writes nothing afterwards.
  const other = await page.context().newPage()
  await other.goto(new URL('/console/chat', page.url()).href)
  await other.getByRole('textbox', { name: 'Message' }).fill('In the other tab')
  await other.keyboard.press('Enter')
  await expect.poll(kept).toBe(2)
  await opened.signOut()
  for (const tab of [page, other]) await tab.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  expect(await kept()).toBe(0)
  await other.reload()
  await other.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  expect(await kept()).toBe(0)
})

test('the prompt is shared by all tasks, and what a task has made is there after another page and a reload', async () => {
  await using opened = await console.open('/playground?task=slug/text-to-image')
  const { page } = opened
  const prompt = page.getByLabel('Prompt', { exact: true })
  const barn = page.getByRole('article').filter({ hasText: 'A red barn' }).getByRole('img')
  await prompt.fill('A red barn')
  await page.getByRole('button', { name: 'Run' }).click()
  await barn.waitFor()
  await opened.choose('Task', 'Completion')
  expect(await prompt.inputValue()).toBe('A red barn')
  await prompt.fill('Once upon a time')
  await page.getByRole('button', { name: 'Run' }).click()
  const story = page.getByRole('article')
  await story.getByText(/tokens out/).waitFor()
  const written = await story.innerText()
  await opened.choose('Task', 'Text to image')
  await barn.waitFor()
  expect(await prompt.inputValue()).toBe('Once upon a time')
  await page.getByRole('link', { name: 'Models', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
  await page.goBack()
  await barn.waitFor()
  await prompt.fill('A blue barn')
  await page.reload()
  await barn.waitFor()
  expect(await prompt.inputValue()).toBe('A blue barn')
  await page.goto('/console/playground?task=std/completion')
  await expect.poll(() => prompt.inputValue()).toBe('A blue barn')
  expect(await story.innerText()).toBe(written)
  // Inputs that the address names are taken once: what a person makes of them stays.
  const { id } = await console.call<{ id: string }>('/api/jobs', {
    task: 'slug/text-to-image',
    model_id: 'infer/demo',
    inputs: { prompt: 'A green barn', width: 64, height: 64 },
  })
  await page.goto(`/console/playground?job=${id}`)
  await expect.poll(() => prompt.inputValue()).toBe('A green barn')
  await prompt.fill('A green barn at night')
  await page.reload()
  await expect.poll(() => prompt.inputValue()).toBe('A green barn at night')
  await opened.signOut()
  await page.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  expect(await page.evaluate('Object.keys(sessionStorage).join()')).toBe('')
})

test('an image of the library becomes the input of another task', async () => {
  const { id } = await console.call<{ id: string }>('/api/jobs', {
    task: 'slug/text-to-image',
    model_id: 'infer/demo',
    inputs: { prompt: 'A white horse', width: 64, height: 64 },
  })
  await console.call(`/api/jobs/${id}?wait=30`)
  await using opened = await console.open('/library?q=white+horse')
  const { page } = opened
  await page.getByRole('link', { name: 'Open image: A white horse' }).click()
  await page.getByRole('dialog').getByRole('link', { name: 'Use as input' }).click()
  await expect.poll(() => page.getByLabel('Task', { exact: true }).innerText()).toBe('Image to image')
  await page.getByLabel('Prompt', { exact: true }).fill('A black horse')
  await page.getByRole('button', { name: 'Run' }).click()
  const run = page.getByRole('article').filter({ hasText: 'A black horse' })
  await run.getByRole('img', { name: 'Image 1: A black horse' }).waitFor()
})

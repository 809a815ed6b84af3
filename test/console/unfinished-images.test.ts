import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, type TestConsole } from './_console.ts'

/** An image that is shown while it is made: the engine sends one that is unfinished, and waits for the test. */
interface Asked {
  folder: string
  inputs: { previews?: number }
}
const png = (background: string) =>
  sharp({ create: { width: 64, height: 64, channels: 3, background } })
    .png()
    .toBuffer()
const asked: Asked[] = []
const finish = Promise.withResolvers<void>()

const engine = createServer((request, response) => {
  void (async () => {
    const body = (await json(request)) as Asked
    asked.push(body)
    const line = (message: object) => response.write(`${JSON.stringify(message)}\n`)
    line({ type: 'progress', fraction: 0.5 })
    line({ type: 'preview', image: 0, data: (await png('orange')).toString('base64') })
    await finish.promise
    writeFileSync(join(body.folder, 'image.png'), await png('red'))
    line({ type: 'completed', files: [{ name: 'image.png', kind: 'image' }], seed_used: 7 })
    response.end()
  })()
})

let console: TestConsole
beforeAll(async () => {
  await once(engine.listen(0, '127.0.0.1'), 'listening')
  const { port } = engine.address() as AddressInfo
  const model = { id: 'painter', engine: 'remote', url: `http://127.0.0.1:${port}/v1`, tasks: ['slug/text-to-image'] }
  console = await openConsole({ models: [model] })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  engine.closeAllConnections()
  engine.close()
})

test('in the playground, on the page of the job and of a node, until the result is there', async () => {
  await using opened = await console.open('/playground?task=slug/text-to-image')
  const { page } = opened
  await page.getByLabel('Prompt', { exact: true }).fill('a lighthouse')
  await page.getByRole('button', { name: 'Run' }).click()
  const unfinished = page.getByRole('img', { name: 'Unfinished image' })
  await unfinished.waitFor()
  expect(await unfinished.evaluate((image: { naturalWidth: number }) => image.naturalWidth)).toBe(64)
  expect(asked.map(({ inputs }) => inputs.previews)).toEqual([3])
  await opened.expectAccessible()
  await opened.screenshot('playground-unfinished')
  // Without the field, which changes no result.
  expect(await page.getByLabel('curl', { exact: true }).and(page.locator('pre')).innerText()).not.toContain('previews')

  const { jobs } = await console.call<{ jobs: { id: string }[] }>('/api/jobs')
  await using other = await console.open(`/jobs/${jobs[0]!.id}`)
  await other.page.getByRole('img', { name: 'Unfinished image' }).waitFor()

  const inputs = { prompt: 'a harbour', previews: 2 }
  const nodes = { draw: { task: 'slug/text-to-image', model_id: 'painter', inputs } }
  const { execution } = await console.call<{ execution: { id: string } }>('/api/workflows/run', { dag: { nodes } })
  await using third = await console.open(`/executions/${execution.id}`)
  await third.page.getByText('draw', { exact: true }).first().click()
  await third.page.getByRole('img', { name: 'Unfinished image' }).waitFor()

  finish.resolve()
  await page.getByRole('img', { name: 'Image 1: a lighthouse' }).waitFor()
  await expect.poll(() => unfinished.count()).toBe(0)
  for (const { page: one } of [other, third])
    await expect.poll(() => one.getByRole('img', { name: 'Unfinished image' }).count()).toBe(0)
})

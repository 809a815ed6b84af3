import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import OpenAI, { APIError } from 'openai'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tinyChatRandom } from '../../bin/tiny-chat.ts'
import { startApp, type TestApp } from '../_app.ts'
import { tinyProjector } from './tiny-projector.ts'

/**
 * Chat with images by the real llama-server and `--mmproj`: see README.md of this folder. The text model and the image
 * encoder are tiny and random, so the text is noise; it must be the same for the same image, and another for another.
 */
const folder = process.env.INFER_REAL_ENGINES ?? ''
const program = join(folder, 'bin', 'llama-server')

describe.skipIf(folder === '' || !existsSync(program))('llama-server with an image encoder', () => {
  let app: TestApp
  let openai: OpenAI
  let images: Server
  let origin: string
  const models = mkdtempSync(join(tmpdir(), 'infer-vision-'))
  const path = process.env.PATH
  const png = (background: string) =>
    sharp({ create: { width: 40, height: 30, channels: 3, background } })
      .png()
      .toBuffer()

  beforeAll(async () => {
    const source = join(models, 'chat.gguf')
    const projector = join(models, 'mmproj.gguf')
    writeFileSync(source, tinyChatRandom())
    writeFileSync(projector, tinyProjector())
    images = createServer((request, response) => void png(request.url!.slice(1)).then(bytes => response.end(bytes)))
    images.listen(0, '127.0.0.1')
    await once(images, 'listening')
    origin = `http://127.0.0.1:${(images.address() as AddressInfo).port}`
    process.env.PATH = `${join(folder, 'bin')}${delimiter}${path}`
    const model = { engine: 'llama-server', source, devices: 'cpu', memory: '256MiB', context_length: 1024 }
    app = await startApp({
      media: { allowed_addresses: ['127.0.0.1/32'] },
      models: [
        { id: 'sees', ...model, args: ['--mmproj', projector] },
        { id: 'blind', ...model },
      ],
    })
    openai = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
  }, 60_000)
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]()
    images.close()
    process.env.PATH = path
    rmSync(models, { recursive: true, force: true })
  })

  async function answer(url: string, model = 'sees'): Promise<{ text: string | null; tokens: number }> {
    const content = [
      { type: 'text' as const, text: 'What?' },
      { type: 'image_url' as const, image_url: { url } },
    ]
    const { choices, usage } = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content }],
      max_tokens: 12,
      temperature: 0,
    })
    return { text: choices[0]!.message.content, tokens: usage!.prompt_tokens }
  }

  test('an image of the request, by data URL and by address', { timeout: 120_000 }, async () => {
    const red = await answer(`data:image/png;base64,${(await png('red')).toString('base64')}`)
    const blue = await answer(`data:image/png;base64,${(await png('blue')).toString('base64')}`)
    expect(blue.text).not.toBe(red.text)
    expect(blue.tokens).toBe(red.tokens)
    expect(await answer(`${origin}/red`)).toEqual(red)
  })

  test.each([
    ['http://169.254.169.254/latest/meta-data', 'sees'],
    ['data:image/png;base64,AAAA', 'sees'],
    ['data:text/html;base64,PGh0bWw+', 'sees'],
    ['data:image/png;base64,iVBORw0KGgo=', 'blind'],
  ])('%s for the model that %s is refused', async (url, model) => {
    const refused = await answer(url, model).catch((thrown: unknown) => thrown)
    expect(refused).toBeInstanceOf(APIError)
    expect((refused as APIError).status).toBe(400)
  })
})

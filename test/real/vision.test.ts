import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { APIError } from 'openai'
import sharp from 'sharp'
import { afterAll, describe, expect, test } from 'vitest'
import { tinyChatRandom } from '../../bin/tiny-chat.ts'
import { startInfer, temporaryFolder } from './_engine.ts'
import { tinyProjector } from './tiny-projector.ts'

/**
 * Chat with images by the real llama-server and `--mmproj`: see README.md of this folder. The text model and the image
 * encoder are tiny and random, so the text is noise; it must be the same for the same image, and another for another.
 */
const program = join(process.env.INFER_REAL_ENGINES ?? '', 'bin', 'llama-server')

describe.skipIf(!existsSync(program))('llama-server with an image encoder', () => {
  let images: Server
  let origin: string
  const folder = temporaryFolder()
  const png = (background: string) =>
    sharp({ create: { width: 40, height: 30, channels: 3, background } })
      .png()
      .toBuffer()

  const infer = startInfer(dirname(program), async () => {
    const source = join(folder(), 'chat.gguf')
    const projector = join(folder(), 'mmproj.gguf')
    writeFileSync(source, tinyChatRandom())
    writeFileSync(projector, tinyProjector())
    images = createServer((request, response) => void png(request.url!.slice(1)).then(bytes => response.end(bytes)))
    images.listen(0, '127.0.0.1')
    await once(images, 'listening')
    origin = `http://127.0.0.1:${(images.address() as AddressInfo).port}`
    const model = { engine: 'llama-server', source, devices: 'cpu', memory: '256MiB', context_length: 1024 }
    return {
      media: { allowed_addresses: ['127.0.0.1/32'] },
      models: [
        { id: 'sees', ...model, args: ['--mmproj', projector] },
        { id: 'blind', ...model },
      ],
    }
  })
  afterAll(() => images.close())

  async function answer(url: string, model = 'sees'): Promise<{ text: string | null; tokens: number }> {
    const content = [
      { type: 'text' as const, text: 'What?' },
      { type: 'image_url' as const, image_url: { url } },
    ]
    const { choices, usage } = await infer.openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content }],
      max_tokens: 12,
      temperature: 0,
    })
    return { text: choices[0]!.message.content, tokens: usage!.prompt_tokens }
  }

  test('an image of the request, by data URL and by address', async () => {
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

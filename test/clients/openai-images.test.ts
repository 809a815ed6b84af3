import OpenAI, { toFile } from 'openai'
import sharp, { type Sharp } from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** Generates images with the official client, on the engine that needs no model. */
let app: TestApp
let client: OpenAI
beforeAll(async () => {
  const tasks = ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting']
  app = await startApp({ models: [{ id: 'drawn', engine: 'demo', tasks, args: ['--step-ms', '0'] }] })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const asked = { model: 'drawn', prompt: 'a cat' } as const
const size = '256x256' as const
const teal = () => sharp({ create: { width: 128, height: 128, channels: 4, background: 'teal' } }).png()
const hole = { create: { width: 64, height: 128, channels: 4, background: 'black' } } as const
const masked = () => teal().composite([{ input: hole, blend: 'dest-out' }])
const png = async (picture: Sharp, name: string) => toFile(await picture.toBuffer(), name, { type: 'image/png' })

test('generate: a URL without authentication, and the id of the job', async () => {
  const { data, response } = await client.images.generate({ ...asked, size, n: 2 }).withResponse()
  expect(data.data).toHaveLength(2)
  const picture = await fetch(data.data![1]!.url!)
  expect(await sharp(Buffer.from(await picture.arrayBuffer())).metadata()).toMatchObject({ width: 256, height: 256 })
  expect(data.usage!.total_tokens).toBe(0)
  expect(response.headers.get('x-job-id')).toMatch(/^job_/)
})

test('generate: base64', async () => {
  const { data } = await client.images.generate({
    ...asked,
    size,
    response_format: 'b64_json',
    output_format: 'jpeg',
  })
  expect(await sharp(Buffer.from(data![0]!.b64_json!, 'base64')).metadata()).toMatchObject({ format: 'jpeg' })
})

test('generate: a stream with unfinished images', async () => {
  const seen: [type: string, index: number | undefined][] = []
  const images: string[] = []
  for await (const event of await client.images.generate({ ...asked, size, stream: true, partial_images: 2 })) {
    seen.push([event.type, 'partial_image_index' in event ? event.partial_image_index : undefined])
    images.push(event.b64_json)
    expect(await sharp(Buffer.from(event.b64_json, 'base64')).metadata()).toMatchObject({ width: 256, format: 'png' })
  }
  expect(seen).toEqual([
    ['image_generation.partial_image', 0],
    ['image_generation.partial_image', 1],
    ['image_generation.completed', undefined],
  ])
  expect(new Set(images).size).toBe(3)
})

test('generate: a transparent background as WebP, and less quality', async () => {
  const request = { ...asked, size, seed: 3, response_format: 'b64_json', output_format: 'webp' } as const
  const [clear, plain, small] = await Promise.all(
    [{ background: 'transparent' } as const, {}, { output_compression: 10 }].map(async more => {
      const { data } = await client.images.generate({ ...request, ...more })
      return Buffer.from(data![0]!.b64_json!, 'base64')
    }),
  )
  expect(await sharp(clear).metadata()).toMatchObject({ format: 'webp', hasAlpha: true })
  const { channels } = await sharp(clear).stats()
  expect([channels[3]!.min, channels[3]!.max]).toEqual([0, 255])
  expect(await sharp(small).metadata()).toMatchObject({ format: 'webp', width: 256 })
  expect(small!.length).toBeLessThan(plain!.length / 2)
})

test('edit: several images, one of them WebP, and a stream', async () => {
  const webp = await toFile(await teal().webp().toBuffer(), 'teal.webp', { type: 'image/webp' })
  const red = await png(sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } }).png(), 'red.png')
  const events = await client.images.edit({
    ...asked,
    image: [webp, red],
    strength: 0,
    stream: true,
    partial_images: 1,
  } as OpenAI.ImageEditParamsStreaming)
  const seen = []
  for await (const event of events) seen.push(event)
  expect(seen.map(({ type }) => type)).toEqual(['image_edit.partial_image', 'image_edit.completed'])
  const bytes = Buffer.from(seen[1]!.b64_json, 'base64')
  // The demo engine places the images side by side.
  const { data, info } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true })
  const at = (x: number, y: number) => [...data.subarray(3 * (y * info.width + x), 3 * (y * info.width + x) + 3)]
  expect([info.width, info.height]).toEqual([128, 128])
  // What was lossy is written as JPEG again.
  const near = (...colour: number[]) => colour.map(one => expect.closeTo(one, -1) as number)
  expect(at(20, 20)).toEqual(near(0, 128, 128))
  expect(at(100, 20)).toEqual(near(255, 0, 0))
})

test('createVariation', async () => {
  const { data } = await client.images.createVariation({ model: 'drawn', image: await png(teal(), 'teal.png'), n: 2 })
  expect(data).toHaveLength(2)
  const bytes = Buffer.from(await (await fetch(data![1]!.url!)).arrayBuffer())
  expect(await sharp(bytes).metadata()).toMatchObject({ width: 128, height: 128 })
})

test('edit: a form with an image, and with a mask of what is transparent', async () => {
  const image = await png(teal(), 'teal.png')
  const whole = await client.images.edit({ ...asked, image })
  const part = await client.images.edit({ ...asked, image: [image], mask: await png(masked(), 'mask.png') })
  for (const { data } of [whole, part]) {
    const bytes = Buffer.from(await (await fetch(data![0]!.url!)).arrayBuffer())
    expect(await sharp(bytes).metadata()).toMatchObject({ width: 128, height: 128 })
    // The mask is transparent in the middle; at its edge the image is kept, byte for byte.
    const pixels = await sharp(bytes).removeAlpha().raw().toBuffer()
    const edge = 3 * (64 * 128 + 120)
    const kept = [...pixels.subarray(edge, edge + 3)]
    if (data === part.data) expect(kept).toEqual([0, 128, 128])
    else expect(kept).not.toEqual([0, 128, 128])
  }
})

test('invalid input is an error of the class that the client has for it', async () => {
  const error = await client.images.generate({ ...asked, model: 'nobody' }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(OpenAI.NotFoundError)
  expect(error).toMatchObject({ code: 'model_not_found', param: 'model' })
})

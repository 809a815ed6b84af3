import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import { callOf, type Demo, newFolder, startDemo } from './_engine.ts'

let demo: Demo
beforeAll(async () => {
  demo = await startDemo()
})

/** Every pixel as decoded by the test, three bytes each. */
const pixels = (path: string) => sharp(path).removeAlpha().raw().toBuffer()
/** The difference of two images, 0 to 255. */
const distance = (one: Buffer, other: Buffer) =>
  one.reduce((sum, value, at) => sum + Math.abs(value - other[at]!), 0) / one.length

/** An image of noise, without repetition. */
async function noise(width: number, height: number, channels: 3 | 4 = 3): Promise<string> {
  const path = join(newFolder(), 'given.png')
  const data = Buffer.from(Array.from({ length: width * height * channels }, (_, at) => (at * 2654435761) >>> 24))
  await sharp(data, { raw: { width, height, channels } }).png().toFile(path)
  return path
}

const sizes: [width: number, height: number, format: 'png' | 'jpeg' | 'webp', steps: number][] = [
  [1024, 1024, 'png', 30],
  [832, 480, 'jpeg', 1],
  [480, 832, 'webp', 50],
  [64, 64, 'png', 10],
  [2048, 64, 'jpeg', 4],
  [33, 2047, 'png', 4],
  [16, 16, 'webp', 4],
]
test.each(sizes)('text-to-image %ix%i as %s in %i steps', async (width, height, format, steps) => {
  const { files, messages } = await demo.generate(
    callOf('text-to-image', { width, height, output_format: format, num_inference_steps: steps }),
  )
  expect(files).toHaveLength(1)
  const about = await sharp(files[0], { failOn: 'error' }).metadata()
  expect([about.format, about.width, about.height, about.channels]).toEqual([format, width, height, 3])
  const stats = await sharp(files[0]).stats()
  expect(Math.max(...stats.channels.map(({ stdev }) => stdev))).toBeGreaterThan(10)
  expect(messages.at(-1)).toMatchObject({ type: 'completed', seed_used: 42 })
})

test('the same call gives the same bytes, and every field changes them', async () => {
  const bytesOf = async (inputs: object) =>
    readFileSync((await demo.generate(callOf('text-to-image', inputs))).files[0]!)
  const first = await bytesOf({})
  expect((await bytesOf({})).equals(first)).toBe(true)
  for (const other of [
    { seed: 43 },
    { seed: 42 + 2 ** 40 },
    { prompt: 'a dog' },
    { num_inference_steps: 40 },
    { guidance_scale: 9 },
    { negative_prompt: 'rain' },
  ])
    expect([other, (await bytesOf(other)).equals(first)]).toEqual([other, false])
})

test('several images are those of the next seeds', async () => {
  const seeds = (await demo.generate(callOf('text-to-image', { num_images: 3, seed: 7 }))).files
  expect(seeds).toHaveLength(3)
  const [, second, third] = await Promise.all(seeds.map(pixels))
  const print = 40
  const above = (data: Buffer) => data.subarray(0, 320 * 3 * (192 - print))
  const alone = await pixels((await demo.generate(callOf('text-to-image', { seed: 8 }))).files[0]!)
  // The caption names the seed of the call.
  expect(above(alone).equals(above(second!))).toBe(true)
  expect(above(second!).equals(above(third!))).toBe(false)
})

test('the prompt is visible', async () => {
  const [said, unsaid] = await Promise.all(
    ['WORDS', ' '].map(async prompt => pixels((await demo.generate(callOf('text-to-image', { prompt }))).files[0]!)),
  )
  const white = (data: Buffer) => {
    let found = 0
    for (let at = 0; at < 320 * 150 * 3; at += 3) if (data[at]! + data[at + 1]! + data[at + 2]! > 750) found++
    return found
  }
  expect(white(said!)).toBeGreaterThan(white(unsaid!) + 100)
})

describe('image-to-image', () => {
  test('the source image is visible, the less the higher the strength', async () => {
    const image = await noise(320, 192)
    const given = await pixels(image)
    const far: number[] = []
    for (const strength of [0, 0.3, 0.6, 1]) {
      const { files } = await demo.generate(callOf('image-to-image', { image, strength, prompt: '' }))
      far.push(distance((await pixels(files[0]!)).subarray(0, 320 * 3 * 150), given.subarray(0, 320 * 3 * 150)))
    }
    expect(far[0]).toBe(0)
    expect(far).toEqual(far.toSorted((a, b) => a - b))
    const { files } = await demo.generate(callOf('text-to-image', { prompt: '' }))
    const nothingOfIt = distance((await pixels(files[0]!)).subarray(0, 320 * 3 * 150), given.subarray(0, 320 * 3 * 150))
    expect(far[3]).toBeGreaterThan(20)
    expect(far[3]).toBeLessThan(nothingOfIt * 0.9)
  })

  test('an image of another size and with transparency', async () => {
    const image = await noise(100, 50, 4)
    const { files } = await demo.generate(callOf('image-to-image', { image, num_images: 2, output_format: 'jpeg' }))
    for (const file of files)
      expect(await sharp(file).metadata()).toMatchObject({ format: 'jpeg', width: 320, height: 192 })
    expect(files).toHaveLength(2)
  })

  test('a file that is no image is refused as such', async () => {
    const { status, error } = await demo.generate(callOf('image-to-image', { image: import.meta.filename }))
    expect([status, error?.code]).toEqual([400, 'invalid_image'])
  })
})

describe('inpainting', () => {
  const [width, height] = [320, 192]
  const drawMask = async (greyAt: (x: number, y: number) => number) => {
    const path = join(newFolder(), 'mask.png')
    const data = Buffer.from(
      Array.from({ length: width * height }, (_, at) => greyAt(at % width, Math.floor(at / width))),
    )
    await sharp(data, { raw: { width, height, channels: 1 } })
      .png()
      .toFile(path)
    return path
  }
  const inside = (x: number, y: number) => x >= 90 && x < 250 && y >= 40 && y < 140

  test.each([3, 4] as const)('outside the mask every bit is unchanged (%i channels)', async channels => {
    const image = await noise(width, height, channels)
    const mask = await drawMask((x, y) => (inside(x, y) ? 255 : 0))
    const { files } = await demo.generate(callOf('inpainting', { image, mask, strength: 1 }))
    const { data, info } = await sharp(files[0]).raw().toBuffer({ resolveWithObject: true })
    expect([info.width, info.height, info.channels]).toEqual([width, height, channels])
    const given = await sharp(image).raw().toBuffer()
    let kept = 0
    let changed = 0
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++) {
        const at = (y * width + x) * channels
        const same = data.subarray(at, at + channels).equals(given.subarray(at, at + channels))
        if (inside(x, y)) changed += Number(!same)
        else kept += Number(same)
      }
    expect(kept).toBe(width * height - 160 * 100)
    expect(changed).toBeGreaterThan(160 * 100 * 0.99)
  })

  test('grey is a mix, and black everywhere changes nothing', async () => {
    const image = await noise(width, height)
    const given = await pixels(image)
    const far: number[] = []
    for (const grey of [0, 128, 255]) {
      const mask = await drawMask(() => grey)
      const { files, messages } = await demo.generate(callOf('inpainting', { image, mask, strength: 1, prompt: '' }))
      far.push(distance(await pixels(files[0]!), given))
      expect(messages.some(message => message.type === 'log' && message.level === 'WARN')).toBe(grey === 0)
    }
    expect(far[0]).toBe(0)
    expect(far[1]! / far[2]!).toBeCloseTo(128 / 255, 1)
  })
})

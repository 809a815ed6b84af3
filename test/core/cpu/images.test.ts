import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import sharp from 'sharp'
import { afterAll, describe, expect, test } from 'vitest'
import { openCpu } from '../../../core/cpu/cpu.ts'
import { imageFormats } from '../../../core/cpu/image-kind.ts'
import type { ImageRules } from '../../../core/cpu/image-work.ts'
import { blackPng, chunk, noise, withSegment } from './_pictures.ts'

const cpu = openCpu()
const folder = mkdtempSync(join(tmpdir(), 'infer-images-'))
afterAll(async () => {
  await cpu.close()
  rmSync(folder, { recursive: true, force: true })
})
const rules: ImageRules = { formats: imageFormats, maxBytes: 10 << 20, maxPixels: 40_000_000, maxSide: 8192 }
const jpeg = await noise().jpeg().toBuffer()
const progressive = await noise().jpeg({ progressive: true }).toBuffer()
const png = await noise().png().toBuffer()
const webp = await noise().webp().toBuffer()
const gif = await noise().gif().toBuffer()
const tiff = await noise(8, 8).tiff().toBuffer()
const avif = await noise().avif({ effort: 0 }).toBuffer()
const losslessWebp = await noise().webp({ lossless: true, effort: 0 }).toBuffer()
const transparent = await noise().ensureAlpha(0.5).webp().toBuffer()
const moving = (format: 'gif' | 'webp') =>
  sharp(Buffer.from([...Array(48).fill(0), ...Array(48).fill(255)]), {
    raw: { width: 4, height: 8, channels: 3, pageHeight: 4 },
  })
    .toFormat(format)
    .toBuffer()
function withBitFlipped(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes)
  changed[at]! ^= 1
  return changed
}
const refused = (message: RegExp) => ({
  name: 'Failure',
  code: 'invalid_image',
  message: expect.stringMatching(message) as string,
})

describe('the type of an image is read from its bytes', () => {
  test.each([
    ['jpeg', jpeg],
    ['jpeg', progressive],
    ['png', png],
    ['webp', webp],
    ['gif', gif],
    ['avif', avif],
  ])('%s', async (format, bytes) => {
    await expect(cpu.image(bytes, rules)).resolves.toEqual({ format, width: 320, height: 200 })
    expect(bytes.length).toBeGreaterThan(0)
    const path = join(folder, 'picture.txt')
    writeFileSync(path, bytes)
    await expect(cpu.image(path, rules)).resolves.toEqual({ format, width: 320, height: 200 })
  })

  test('a rotated image is decoded upright', async () => {
    const turned = await noise().withMetadata({ orientation: 6 }).jpeg().toBuffer()
    await expect(cpu.image(turned, rules)).resolves.toEqual({ format: 'jpeg', width: 200, height: 320 })
    const redrawn = await cpu.reencode(turned, rules, 'image')
    expect(await sharp(redrawn.bytes).metadata()).toMatchObject({ width: 200, height: 320 })
    expect((await sharp(redrawn.bytes).metadata()).orientation ?? 1).toBe(1)
    expect([redrawn.width, redrawn.height]).toEqual([200, 320])
    expect(await sharp(await cpu.thumbnail(turned, 100)).metadata()).toMatchObject({
      format: 'webp',
      width: 63,
      height: 100,
    })
  })
})

test('threads start and end, and the library stays loaded', async () => {
  for (let at = 0; at < 5; at++) {
    const other = openCpu()
    await expect(other.image(png, rules)).resolves.toMatchObject({ format: 'png' })
    const broken = other.image(jpeg, rules).then(
      () => 'whole',
      () => 'broken off',
    )
    await other.close()
    expect(['whole', 'broken off']).toContain(await broken)
  }
})

describe('a mask for OpenAI', () => {
  const greys = (width: number, values: number[]) =>
    sharp(Buffer.from(values), { raw: { width, height: values.length / width, channels: 1 } })
  const picture = (width: number, height: number) =>
    sharp({ create: { width, height, channels: 3, background: 'red' } })
      .jpeg()
      .toBuffer()
  test.each<[what: string, mask: () => Promise<Buffer>]>([
    ['grey', () => greys(2, [0, 255, 128, 0]).png().toBuffer()],
    ['coloured', () => greys(2, [0, 255, 128, 0]).toColourspace('srgb').png().toBuffer()],
    ['with an alpha channel', () => greys(2, [0, 255, 128, 0]).toColourspace('srgb').ensureAlpha(1).png().toBuffer()],
  ])('%s: transparent where ours is white, in the colours of ours', async (_what, mask) => {
    const made = await cpu.alphaMask(await mask(), await picture(2, 2))
    expect(await sharp(made).metadata()).toMatchObject({ format: 'png', width: 2, height: 2, channels: 4 })
    expect([...(await sharp(made).raw().toBuffer())]).toEqual([
      0, 0, 0, 255, 255, 255, 255, 0, 128, 128, 128, 127, 0, 0, 0, 255,
    ])
  })
  test('has the size of the image', async () => {
    const made = await cpu.alphaMask(await greys(1, [0, 255]).png().toBuffer(), await picture(40, 30))
    expect(await sharp(made).metadata()).toMatchObject({ width: 40, height: 30 })
    const alpha = await sharp(made).extractChannel(3).raw().toBuffer()
    expect([alpha[0], alpha.at(-1)]).toEqual([255, 0])
  })
  test('is refused for a damaged mask', async () => {
    await expect(cpu.alphaMask(png.subarray(0, 200), await picture(2, 2))).rejects.toMatchObject({
      code: 'invalid_image',
    })
  })
})

describe('a re-encoded image', () => {
  test('has no metadata and no bytes after its end', async () => {
    const secret = 'taken at home'
    const spoken = await noise()
      .withExif({ IFD0: { Copyright: secret } })
      .jpeg()
      .toBuffer()
    const polyglot = Buffer.concat([spoken, Buffer.from('PK\x03\x04<script>')])
    expect(polyglot.includes(secret)).toBe(true)
    const { bytes, format } = await cpu.reencode(polyglot, rules, 'image')
    expect(format).toBe('jpeg')
    expect(Buffer.from(bytes).includes(secret) || Buffer.from(bytes).includes('<script>')).toBe(false)
    expect((await sharp(bytes).metadata()).exif).toBeUndefined()
  })

  test.each<[string, Buffer, 'jpeg' | 'png']>([
    ['JPEG', jpeg, 'jpeg'],
    ['PNG', png, 'png'],
    ['GIF', gif, 'png'],
    ['AVIF', avif, 'jpeg'],
    ['WebP with losses', webp, 'jpeg'],
    ['WebP without losses', losslessWebp, 'png'],
    ['WebP with transparency', transparent, 'png'],
  ])('of %s is a PNG or a JPEG, also as a data: URL', async (_, bytes, format) => {
    const { bytes: written, ...facts } = await cpu.reencode(bytes, rules, 'image')
    expect(facts).toEqual({ format, width: 320, height: 200 })
    const url = Buffer.from(await cpu.imageDataUrl(Buffer.from(bytes), rules)).toString()
    expect(url === `data:image/${format};base64,${Buffer.from(written).toString('base64')}`).toBe(true)
  })

  test('and looks the same', async () => {
    const { bytes, format } = await cpu.reencode(png, rules, 'image')
    expect(format).toBe('png')
    expect((await sharp(bytes).raw().toBuffer()).equals(await sharp(png).raw().toBuffer())).toBe(true)
    const again = await cpu.reencode(jpeg, rules, 'image')
    const [one, other] = await Promise.all([sharp(jpeg).raw().toBuffer(), sharp(again.bytes).raw().toBuffer()])
    const off = one.reduce((sum, value, at) => sum + Math.abs(value - other[at]!), 0) / one.length
    expect(off).toBeLessThan(2.5)
  })

  test('a mask is greyscale, and its transparent pixels are black', async () => {
    const half = Buffer.alloc(4 * 4 * 4)
    for (let at = 0; at < 16; at++) half.set(at < 8 ? [255, 255, 255, 255] : [255, 255, 255, 0], at * 4)
    const mask = await sharp(half, { raw: { width: 4, height: 4, channels: 4 } })
      .png()
      .toBuffer()
    const { bytes } = await cpu.reencode(mask, rules, 'mask')
    const { data, info } = await sharp(bytes).toColourspace('b-w').raw().toBuffer({ resolveWithObject: true })
    expect([info.channels, [...data]]).toEqual([1, [...Array(8).fill(255), ...Array(8).fill(0)]])
  })

  test.each([
    ['colours', 4],
    ['greys', 2],
  ] as const)('an alpha mask of %s is white where it is transparent, whatever its colours', async (_, channels) => {
    const pixels = Buffer.alloc(16 * channels, 90)
    for (let at = 0; at < 16; at++) pixels[at * channels + channels - 1] = at < 8 ? 255 : at < 12 ? 0 : 55
    const mask = await sharp(pixels, { raw: { width: 4, height: 4, channels } })
      .png()
      .toBuffer()
    const { bytes, format } = await cpu.reencode(mask, rules, 'alpha mask')
    const { data, info } = await sharp(bytes).toColourspace('b-w').raw().toBuffer({ resolveWithObject: true })
    expect([format, info.channels, [...data]]).toEqual([
      'png',
      1,
      [...Array(8).fill(0), ...Array(4).fill(255), ...Array(4).fill(200)],
    ])
  })

  test('an alpha mask without an alpha channel is refused', async () => {
    await expect(cpu.reencode(png, rules, 'alpha mask')).rejects.toThrow(/no transparent pixels.*'luma'/)
    await expect(cpu.reencode(jpeg, rules, 'alpha mask')).rejects.toThrow(/no transparent pixels/)
  })
})

const movingGif = await moving('gif')
const movingWebp = await moving('webp')
describe('an unsupported image is refused by name', () => {
  test.each<[string, Buffer, RegExp]>([
    ['TIFF', tiff, /is a TIFF; it must be a JPEG, a PNG, a WebP, a GIF, or an AVIF/],
    ['a GIF that moves', movingGif, /has several frames/],
    ['a WebP that moves', movingWebp, /has several frames/],
    ['only the first bytes of a GIF', gif.subarray(0, 6), /cannot be decoded/],
    ['half an AVIF', avif.subarray(0, avif.length / 2), /cannot be decoded/],
    ['only the first box of an AVIF', Buffer.from('\0\0\0\x18ftypavif\0\0\0\0', 'latin1'), /cannot be decoded/],
    ['HEIC', Buffer.from('\0\0\0\x18ftypheic\0\0\0\0', 'latin1'), /is a HEIF or HEIC/],
    ['MP4', Buffer.from('\0\0\0\x18ftypisom\0\0\0\0', 'latin1'), /is a video/],
    ['BMP', Buffer.from('BM......'), /is a BMP/],
    ['PDF', Buffer.from('%PDF-1.7'), /is a PDF/],
    ['ZIP', Buffer.from('PK\x03\x04....', 'latin1'), /is a ZIP archive/],
    [
      'SVG that reads files',
      Buffer.from('<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="file:///etc/passwd"/></svg>'),
      /is an SVG/,
    ],
    ['SVG behind a mark', Buffer.from('\ufeff  <?xml version="1.0"?><svg/>'), /is an SVG/],
    ['HTML', Buffer.from('<!doctype html><script>'), /is an SVG or another text/],
    ['text', Buffer.from('hello'), /is of an unknown format/],
    ['nothing', Buffer.alloc(0), /is empty/],
    ['gzip', gzipSync('x'), /is compressed with gzip/],
    ['brotli of a picture', brotliCompressSync(png), /is of an unknown format/],
    ['a PNG that moves', blackPng(8, 8, [chunk('acTL', Buffer.alloc(8))]), /has several frames/],
    ['only the first bytes of a PNG', png.subarray(0, 8), /cannot be decoded/],
    ['only the first bytes of a JPEG', jpeg.subarray(0, 4), /cannot be decoded/],
    ['a PNG whose sum is wrong', withBitFlipped(png, png.length >> 1), /cannot be decoded/],
  ])('%s', async (_, bytes, message) => {
    await expect(cpu.image(bytes, rules)).rejects.toMatchObject(refused(message))
    await expect(cpu.reencode(bytes, rules, 'image')).rejects.toMatchObject(refused(message))
  })

  test.each([0.3, 0.9, 0.99])('cut at %d of its length', async part => {
    for (const whole of [jpeg, png])
      await expect(cpu.image(whole.subarray(0, whole.length * part), rules)).rejects.toMatchObject(refused(/cut short/))
  })

  test('sizes at the limit and beyond', async () => {
    await expect(cpu.image(blackPng(8192, 10), rules)).resolves.toMatchObject({ width: 8192 })
    await expect(cpu.image(blackPng(8193, 10), rules)).rejects.toMatchObject(refused(/8193 × 10 pixels.*8192/))
    await expect(cpu.image(blackPng(8000, 5000), rules)).resolves.toMatchObject({ height: 5000 })
    await expect(cpu.image(blackPng(8000, 5001), rules)).rejects.toMatchObject(refused(/40 million pixels at most/))
    const exactly = Buffer.concat([png, Buffer.alloc(rules.maxBytes - png.length)])
    await expect(cpu.image(exactly, rules)).resolves.toMatchObject({ format: 'png' })
    await expect(cpu.image(Buffer.concat([exactly, Buffer.alloc(1)]), rules)).rejects.toMatchObject(refused(/10 MB/))
  })
})

describe('decompression bombs', () => {
  const big = deflateSync(Buffer.alloc(100 << 20), { level: 9 })
  const named = (name: string) => Buffer.from(`${name}\0\0`, 'latin1')
  const huge = blackPng(30_000, 30_000)
  const lying = Buffer.from(jpeg)
  const frame = lying.indexOf(Buffer.from([0xff, 0xc0]))
  lying.writeUInt32BE(0xfde8fde8, frame + 5)
  const exif = Array.from({ length: 100 }, () =>
    Buffer.concat([Buffer.from('Exif\0\0II*\0'), Buffer.alloc(65_000, 0xff)]),
  )
  const withScans = (whole: Buffer, times: number) => {
    const last = whole.subarray(whole.lastIndexOf('\xff\xda', undefined, 'latin1'), -2)
    return Buffer.concat([whole.subarray(0, -2), ...Array<Buffer>(times).fill(last), whole.subarray(-2)])
  }
  const all: [string, Buffer, RegExp | 'fine'][] = [
    ['900 million pixels', huge, /is 30000 × 30000 pixels/],
    ['a JPEG that says it is the largest', lying, /is 65000 × 65000 pixels/],
    ['the largest that may be', blackPng(8192, 4882), 'fine'],
    ['a text that grows', blackPng(8, 8, [chunk('zTXt', Buffer.concat([named('Comment'), big]))]), 'fine'],
    ['a colour profile that grows', blackPng(8, 8, [chunk('iCCP', Buffer.concat([named('icc'), big]))]), 'fine'],
    ['a JPEG that is drawn over and over', withScans(progressive, 200), /more than 100 scans/],
    ['much EXIF', exif.reduce<Buffer>((whole, one) => withSegment(whole, 0xe1, one), jpeg), 'fine'],
    [
      'many comments',
      Buffer.concat([
        jpeg.subarray(0, 2),
        ...Array.from({ length: 100_000 }, () => Buffer.from([0xff, 0xfe, 0, 4, 0x41, 0x41])),
        jpeg.subarray(2),
      ]),
      'fine',
    ],
  ]

  test('are small files that use no memory', async () => {
    expect(huge.length).toBeLessThan(120_000)
    await cpu.reencode(png, rules, 'image')
    const before = process.memoryUsage.rss()
    let most = before
    const watching = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 5)
    for (const [name, bytes, message] of all)
      for (const work of [cpu.image, cpu.reencode])
        if (message === 'fine') await expect(work(bytes, rules, 'image'), name).resolves.toBeDefined()
        else await expect(work(bytes, rules, 'image'), name).rejects.toMatchObject(refused(message))
    clearInterval(watching)
    expect((most - before) / 1e6).toBeLessThan(150)
  })

  test('a hundred images leak no memory', async () => {
    const picture = await noise(800, 600).jpeg().toBuffer()
    const round = () => Promise.all(Array.from({ length: 25 }, () => cpu.reencode(picture, rules, 'image')))
    await round()
    const before = process.memoryUsage.rss()
    for (let at = 0; at < 4; at++) await round()
    expect((process.memoryUsage.rss() - before) / 1e6).toBeLessThan(120)
  })
})

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newId } from '../../../core/ids.ts'
import { fetchRefusal } from '../../../core/media/fetch.ts'
import { noise } from '../cpu/_pictures.ts'
import { mediaHere, origin } from './_media.ts'

let here: Awaited<ReturnType<typeof mediaHere>>
let asked: string[] = []
let content: Buffer = Buffer.alloc(0)
let hold: ((response: ServerResponse) => void) | undefined
const site = createServer((request, response) => {
  asked.push(request.url!)
  response.setHeader('content-type', 'text/html')
  if (hold) hold(response)
  else response.end(content)
})
let address: string
const jpeg = await noise()
  .withExif({ IFD0: { Copyright: 'taken at home' } })
  .jpeg()
  .toBuffer()
const png = await noise(64, 48).png().toBuffer()

beforeAll(async () => {
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  address = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  here = await mediaHere({ media: { allowed_addresses: ['127.0.0.1'] } })
})
afterAll(async () => {
  site.close()
  await here.close()
})

const field = 'image_url'
const mine = () => ({ organizationId: here.organizations[0], origin })
const theirs = () => ({ organizationId: here.organizations[1], origin })
const dataUrl = (bytes: Buffer, type = 'image/png') => `data:${type};base64,${bytes.toString('base64')}`
const uploaded = (organizationId: string, bytes: Buffer) =>
  here.files.keep(organizationId, bytes, {
    name: 'notes.txt',
    contentType: 'application/octet-stream',
    purpose: 'upload',
    expiresAt: null,
  })

describe('an image is accepted', () => {
  test('as a large data: URL, percent-encoded, which a thread decodes', async () => {
    const large = await noise(400, 400).png().toBuffer()
    const decode = vi.spyOn(here.cpu, 'bytesOfBase64')
    const sent = dataUrl(large).replaceAll('+', '%2B')
    await here.take(mine(), field, sent, 'image')
    expect(sent.length).toBeGreaterThan(128 << 10)
    expect(decode.mock.results[0]!.value).toBeInstanceOf(Promise)
    await here.take(mine(), field, dataUrl(png), 'image')
    expect(decode.mock.results[1]!.value).toBeInstanceOf(Uint8Array)
  })

  test("from an address, by its content and not by the server's content type", async () => {
    content = jpeg
    const jobId = newId('job')
    const file = await here.take({ ...mine(), jobId }, field, `${address}/cat.png`, 'image')
    expect(file).toMatchObject({
      organizationId: here.organizations[0],
      purpose: 'input',
      jobId,
      name: 'image.jpg',
      contentType: 'image/jpeg',
      width: 320,
      height: 200,
    })
    const stored = readFileSync(here.files.pathOf(file))
    expect(stored.includes('taken at home')).toBe(false)
    expect(await sharp(stored).metadata()).toMatchObject({ format: 'jpeg', width: 320, height: 200 })
    expect(await here.files.find(here.organizations[0], file.id)).toEqual(file)
    expect(await here.files.find(here.organizations[1], file.id)).toBeUndefined()
    // Kept without a job until its job exists; then as long as the job.
    expect(file.expiresAt! - file.createdAt).toBe(3_600_000)
  })

  test.each([
    'data:image/png;base64,',
    'data:;base64,',
    'DATA:text/html;charset=utf-8;base64,',
    'data:image/svg+xml;base64,',
  ])('from %s', async head => {
    const file = await here.take(mine(), field, head + png.toString('base64'), 'image')
    expect(file).toMatchObject({ contentType: 'image/png', width: 64, height: 48 })
  })

  test.each(['webp', 'gif', 'avif'] as const)('as %s, from any source', async format => {
    const bytes = await noise(64, 48).toFormat(format).toBuffer()
    content = bytes
    const uploadedFile = await uploaded(here.organizations[0], bytes)
    for (const value of [`${address}/cat`, dataUrl(bytes), uploadedFile.id])
      for (const kind of ['image', 'mask'] as const)
        expect(await here.take(mine(), field, value, kind)).toMatchObject({ width: 64, height: 48 })
  })

  test('in lines, which are not counted as bytes', async () => {
    const large = Buffer.concat([png, Buffer.alloc((10 << 20) - png.length)])
    const url = dataUrl(large).replace(/.{76}/g, '$&\r\n')
    expect(await here.take(mine(), field, url, 'image')).toMatchObject({ width: 64, height: 48 })
  })

  test('from a file of the organization, as a separate file', async () => {
    const first = await uploaded(here.organizations[0], png)
    const file = await here.take(mine(), field, first.id, 'image')
    expect(file.id).not.toBe(first.id)
    await here.files.remove(here.organizations[0], first.id)
    expect(await here.files.find(here.organizations[0], file.id)).toBeDefined()
  })

  test('from an address that this server signed, read from the disk, for any organization', async () => {
    asked = []
    const first = await uploaded(here.organizations[0], png)
    const link = here.files.link(first, origin)
    for (const sender of [mine(), theirs()]) {
      const file = await here.take(sender, field, link, 'image')
      expect(file).toMatchObject({ organizationId: sender.organizationId, width: 64 })
    }
    expect(asked).toEqual([])
  })

  test('in the request, already decoded', async () => {
    const file = await here.take(mine(), field, new Uint8Array(png), 'image')
    expect(file).toMatchObject({ contentType: 'image/png', width: 64, height: 48 })
  })

  test('in turn: four of an organization at once, and no other organization waits for them', async () => {
    const held: ServerResponse[] = []
    const waiting = () => held.splice(0).forEach(response => response.end(png))
    hold = response => void held.push(response)
    const all = Array.from({ length: 6 }, () => here.take(mine(), field, `${address}/slow`, 'image'))
    await expect.poll(() => held.length).toBe(4)
    const other = here.take(theirs(), field, `${address}/slow`, 'image')
    await expect.poll(() => held.length).toBe(5)
    waiting()
    await other
    await expect.poll(() => held.length).toBe(2)
    waiting()
    hold = undefined
    expect(await Promise.all(all)).toHaveLength(6)
  })

  test('as a mask, in greyscale', async () => {
    const file = await here.take(mine(), 'mask_url', dataUrl(jpeg), 'mask')
    expect(file).toMatchObject({ name: 'mask.png', contentType: 'image/png', width: 320, height: 200 })
    expect(await sharp(here.files.pathOf(file)).metadata()).toMatchObject({ space: 'b-w', channels: 1 })
  })
})

describe('an image is refused with its field', () => {
  const refusedBy = (code: string, message: RegExp | string) => ({
    name: 'Failure',
    code,
    param: field,
    message: typeof message === 'string' ? message : (expect.stringMatching(message) as string),
  })

  test.each([
    '',
    'cat.png',
    '/etc/passwd',
    'file:///etc/passwd',
    'ftp://example.com/cat.png',
    'file-../../etc/passwd',
    'job_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    `http://example.com/${'a'.repeat(3000)}`,
    'http://[',
    'data:image/png,hello',
    'data:image/png;base64,iVBORw0KGgo=garbage',
  ])('from %s', async value => {
    await expect(here.take(mine(), field, value, 'image')).rejects.toMatchObject(
      refusedBy('invalid_value', /'image_url'/),
    )
  })

  test('from a missing file, or one of another organization', async () => {
    const foreign = await uploaded(here.organizations[1], png)
    const removed = await uploaded(here.organizations[0], png)
    await here.files.remove(here.organizations[0], removed.id)
    const said = await Promise.all(
      [newId('file'), foreign.id, removed.id].map(id =>
        here.take(mine(), field, id, 'image').then(
          () => 'taken',
          (thrown: Error) => {
            expect(thrown).toMatchObject(refusedBy('not_found', /does not exist/))
            return thrown.message.replace(id, 'ID')
          },
        ),
      ),
    )
    expect(new Set(said).size).toBe(1)
  })

  test('from an unsigned, expired or wrong address of this server, which is not even fetched', async () => {
    asked = []
    const first = await uploaded(here.organizations[0], png)
    const link = new URL(here.files.link(first, address))
    const other = new URL(here.files.link(await uploaded(here.organizations[0], png), address))
    const removed = await uploaded(here.organizations[0], png)
    const gone = here.files.link(removed, address)
    await here.files.remove(here.organizations[0], removed.id)
    const forged = new URL(link)
    forged.searchParams.set('sig', other.searchParams.get('sig')!)
    const long = new URL(link)
    long.searchParams.set('exp', String(Number(link.searchParams.get('exp')) + 1))
    const bare = new URL(link.pathname, address)
    const ended = here.files.link(first, address, Date.now() - 30 * 86_400_000)
    const sender = { ...mine(), origin: address }
    for (const url of [
      forged,
      long,
      bare,
      ended,
      gone,
      `${address}/`,
      `${address}/api/organizations`,
      `${address}/files/x`,
    ])
      await expect(here.take(sender, field, String(url), 'image'), String(url)).rejects.toMatchObject(
        refusedBy('url_fetch_failed', fetchRefusal),
      )
    expect(asked).toEqual([])
    await expect(here.take(sender, field, String(link), 'image')).resolves.toMatchObject({ width: 64 })
  })

  test('from a private address, with the same message', async () => {
    for (const url of ['http://127.0.0.2:1/', 'http://169.254.169.254/latest', 'http://[::1]/', 'http://localhost:9/'])
      await expect(here.take(mine(), field, url, 'image')).rejects.toMatchObject(
        refusedBy('url_fetch_failed', fetchRefusal),
      )
  })

  test.each<[string, Buffer, RegExp]>([
    ['three bytes', Buffer.from('GIF'), /^The image in 'image_url' is of an unknown format/],
    ['a page', Buffer.from('<!doctype html><p>sign in'), /^The image in 'image_url' is an SVG or another text/],
    [
      'a BMP',
      Buffer.from('BM......'),
      /^The image in 'image_url' is a BMP; it must be a JPEG, a PNG, a WebP, a GIF, or /,
    ],
    ['half a picture', jpeg.subarray(0, jpeg.length / 2), /^The image in 'image_url' cannot be decoded/],
    ['too much', Buffer.concat([png, Buffer.alloc(10 << 20)]), /^'image_url' is larger than 10 MB\.$/],
  ])('with %s, from any source', async (_, bytes, message) => {
    content = bytes
    const file = await uploaded(here.organizations[0], bytes)
    for (const value of [`${address}/`, dataUrl(bytes), file.id, here.files.link(file, origin)])
      await expect(here.take(mine(), field, value, 'image')).rejects.toMatchObject(refusedBy('invalid_image', message))
  })

  test('for a caller that disconnected', async () => {
    const signal = AbortSignal.abort(new Error('gone'))
    await expect(here.take({ ...mine(), signal }, field, dataUrl(png), 'image')).rejects.toThrow('gone')
  })
})

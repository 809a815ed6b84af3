import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLog } from '../../../../core/log.ts'
import { formBody } from '../../../../core/tasks/protocols/form-body.ts'
import { audioFile } from '../../../../core/tasks/protocols/openai-audio.ts'
import { voices } from '../../../../gpu/engines/demo/chords.ts'
import { transcribeHandler } from '../../../../gpu/engines/demo/transcribe.ts'
import { openHttp } from '../../../../gpu/engines/http.ts'
import { encode } from './_tones.ts'

let server: Awaited<ReturnType<typeof openHttp>>
beforeAll(async () => {
  server = await openHttp({
    port: 0,
    log: openLog('error'),
    health: () => ({ status: 'ok' }),
    handlers: () => ({ 'POST /v1/audio/transcriptions': transcribeHandler }),
  })
})
afterAll(() => server.close())

/** 24,000 samples a second resampled to the 16,000 that engines receive. */
function resampled(samples: Int16Array): Buffer {
  const out = Buffer.alloc(2 * Math.floor((samples.length * 2) / 3))
  for (let at = 0; at < out.length / 2; at++) out.writeInt16LE(samples[Math.floor(at * 1.5)]!, 2 * at)
  return out
}
async function hear(samples: Buffer, fields: [string, string][] = [['response_format', 'verbose_json']]) {
  const path = join(await mkdtemp(join(tmpdir(), 'infer-tones-')), 'samples')
  await writeFile(path, samples)
  const { contentType, body } = formBody(fields, [audioFile({ path, bytes: samples.length })])
  const response = await fetch(`${server.address}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { 'content-type': contentType },
    body: new Uint8Array(await buffer(body.open())),
  })
  return { status: response.status, body: (await response.json()) as Record<string, never> }
}

test('audio of the toy voice is transcribed, with its times', async () => {
  const text = 'Grüße von der Katze! Und vom Hund.'
  const { status, body } = await hear(resampled(encode(text, voices[0])), [
    ['response_format', 'verbose_json'],
    ['timestamp_granularities[]', 'word'],
  ])
  expect([status, body.text]).toEqual([200, text])
  const segments = body.segments as unknown as { start: number; end: number; text: string }[]
  expect(segments.map(one => one.text)).toEqual(['Grüße von der Katze! ', 'Und vom Hund.'])
  expect(segments[0]!.end).toBeCloseTo(segments[1]!.start, 2)
  expect((body.words as unknown as object[]).length).toBe(7)
  expect((await hear(resampled(encode('Hi', voices[0])), [])).body).toEqual({ text: 'Hi' })
})

test('other audio is transcribed as nothing', async () => {
  const noise = Buffer.alloc(64_000)
  let seed = 7
  for (let at = 0; at < 32_000; at++)
    noise.writeInt16LE(((seed = (seed * 16_807) % 2_147_483_647) % 20_000) - 10_000, 2 * at)
  for (const samples of [Buffer.alloc(64_000), noise, Buffer.alloc(0)]) {
    const { status, body } = await hear(samples)
    expect([status, body]).toEqual([200, expect.objectContaining({ text: '', segments: [] })])
  }
})

test('a body that is no form, or has no audio in it, is refused', async () => {
  const url = `${server.address}/v1/audio/transcriptions`
  const send = (type: string, body: string) =>
    fetch(url, { method: 'POST', headers: { 'content-type': type }, body }).then(({ status }) => status)
  expect(await send('application/json', '{}')).toBe(400)
  expect(await send('multipart/form-data; boundary=x', '--x--\r\n')).toBe(400)
  expect(await send('multipart/form-data; boundary=x', 'nothing')).toBe(400)
  expect(
    await send(
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhello\r\n--x--\r\n',
    ),
  ).toBe(400)
})

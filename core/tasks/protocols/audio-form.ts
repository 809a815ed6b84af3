import { randomBytes } from 'node:crypto'
import { sampleRate } from '../../media/audio-decoder.ts'
import { wavHead } from '../wav.ts'

/** A form for an engine: `head`, the samples, `tail`. */
export interface AudioForm {
  contentType: string
  head: Buffer
  tail: Buffer
}

/** Makes a form with these fields and a WAV file as `file`, whose samples have `bytes` bytes. */
export function audioForm(fields: readonly [name: string, value: string][], bytes: number): AudioForm {
  const boundary = `infer-${randomBytes(18).toString('base64url')}`
  const part = (disposition: string) => `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n`
  const named = (name: string) => `name="${name.replaceAll(/["\r\n]/g, '_')}"`
  const texts = fields.map(([name, value]) => `${part(named(name))}\r\n${value}\r\n`).join('')
  const file = `${part('name="file"; filename="audio.wav"')}content-type: audio/wav\r\n\r\n`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    head: Buffer.concat([Buffer.from(texts + file), wavHead(sampleRate, bytes)]),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
  }
}

import { randomBytes } from 'node:crypto'

/** A form that an engine is sent: `head`, the samples, `tail`. */
export interface SoundForm {
  contentType: string
  head: Buffer
  tail: Buffer
}

/** Of all sounds that engines are sent: 16 bits, one channel. */
export const sampleRate = 16_000
export const sampleBytes = 2

/** The head of a WAV file of so many bytes of samples. */
export function wavHead(bytes: number): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(36 + bytes, 4)
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(sampleRate, 24)
  head.writeUInt32LE(sampleRate * sampleBytes, 28)
  head.writeUInt16LE(sampleBytes, 32)
  head.writeUInt16LE(8 * sampleBytes, 34)
  head.write('data', 36, 'latin1')
  head.writeUInt32LE(bytes, 40)
  return head
}

/** The fields of a form with a WAV file as `file`, whose samples have so many bytes. */
export function soundForm(fields: readonly [name: string, value: string][], bytes: number): SoundForm {
  const boundary = `infer-${randomBytes(18).toString('base64url')}`
  const part = (disposition: string) => `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n`
  const named = (name: string) => `name="${name.replaceAll(/["\r\n]/g, '_')}"`
  const texts = fields.map(([name, value]) => `${part(named(name))}\r\n${value}\r\n`).join('')
  const file = `${part('name="file"; filename="audio.wav"')}content-type: audio/wav\r\n\r\n`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    head: Buffer.concat([Buffer.from(texts + file), wavHead(bytes)]),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
  }
}

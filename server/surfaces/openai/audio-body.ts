import type { z } from 'zod'
import type { MediaInput } from '../../../core/media/media.ts'
import { heldAfterReading, heldBytes, readBody } from '../../http/body/body.ts'
import { formValues, isForm, readForm } from '../../http/body/multipart.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { idempotencyKeyOf } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'

/** A request with audio. Its file is on the disk until the body is disposed of. */
export interface AudioBody extends AsyncDisposable {
  /** The body as a JSON value, also for a form. */
  value: unknown
  /** The audio, if it was sent as a file of a form. */
  file: MediaInput | undefined
}

/** Reads a form or JSON. Adds files that the JSON contains to `exchange.inline`. */
export async function readAudioBody(
  exchange: ClientExchange,
  shape: Readonly<Record<string, z.ZodType>>,
  owners: Owners<'admission' | 'config' | 'cpu' | 'files'>,
): Promise<AudioBody> {
  if (isForm(exchange.req)) {
    const form = await readForm(exchange, { files: { file: 1 }, maxBytes: owners.config.limits.audio_size }, owners)
    const value = formValues(form.fields, shape)
    const [file] = form.files.get('file') ?? []
    // Placeholder for the file: the schema only requires the field.
    if (file) value.file = 'the file of the form'
    return { value, file, [Symbol.asyncDispose]: () => form[Symbol.asyncDispose]() }
  }
  return { value: await readAudioJson(exchange, owners), file: undefined, async [Symbol.asyncDispose]() {} }
}

/** Reads JSON that may contain audio, which is added to `exchange.inline`. */
export async function readAudioJson(exchange: ClientExchange, owners: Owners<'admission' | 'config' | 'cpu'>) {
  const { admission, config, cpu } = owners
  // An invalid key is refused before the body is read.
  const hash = idempotencyKeyOf(exchange) !== undefined
  exchange.releaseBody = admission.holdBody(heldBytes(exchange.req))
  const bytes = await readBody(exchange.req, config.limits.chat_body)
  const size = bytes.length
  const read = await cpu.readBody(bytes, config.limits, { hash, files: size > config.limits.json_body })
  exchange.releaseBody(heldAfterReading(size))
  exchange.bodyHash = read.hash
  exchange.inline = read.inline
  return read.value
}

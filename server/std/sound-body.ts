import type { z } from 'zod'
import type { Sent } from '../../core/media/take.ts'
import { heldBytes, readBody } from '../body.ts'
import type { Call } from '../call.ts'
import { formBody } from '../form-values.ts'
import { isForm, readForm } from '../multipart.ts'
import type { Owners } from '../owners.ts'

/** What was sent with a sound. Its file lies on the disk until it is disposed of. */
export interface SoundBody extends AsyncDisposable {
  /** As JSON would have it. */
  value: unknown
  /** The sound, where it came as the file of a form. */
  file: Sent | undefined
}

/** Reads a form or JSON; of JSON what it holds of files is taken out, and stands in `call.inline`. */
export async function readSoundBody(
  call: Call,
  shape: Readonly<Record<string, z.ZodType>>,
  owners: Pick<Owners, 'admission' | 'config' | 'cpu' | 'files'> = call.owners,
): Promise<SoundBody> {
  const { admission, config, cpu } = owners
  if (isForm(call.req)) {
    const form = await readForm(call, { files: { file: 1 }, maxBytes: config.limits.audio_size }, owners)
    const value = formBody(form.fields, shape)
    const [file] = form.files.get('file') ?? []
    // In the place of the file: what is looked at is only that there is one.
    if (file) value.file = 'the file of the form'
    return { value, file, [Symbol.asyncDispose]: () => form[Symbol.asyncDispose]() }
  }
  call.letBodyGo = admission.holdBody(heldBytes(call.req))
  const bytes = await readBody(call.req, config.limits.chat_body)
  const hash = call.req.headers['idempotency-key'] !== undefined
  const read = await cpu.readBody(bytes, config.limits, { hash, files: bytes.length > config.limits.json_body })
  call.bodyHash = read.hash
  call.inline = read.inline
  return { value: read.value, file: undefined, async [Symbol.asyncDispose]() {} }
}

import { randomUUID } from 'node:crypto'
import type { MediaInput } from '../../../core/media/media.ts'
import { imageRules } from '../../../core/media/media-input.ts'
import { failureOfIssues } from '../../../core/schemas/issues.ts'
import { type ImageTask, operationOf } from '../../../core/schemas/task.ts'
import { type ImageRequest, imageRequests, maxSources } from '../../../core/tasks/image/image-request.ts'
import { formValues } from '../../http/body/form-values.ts'
import { readJson } from '../../http/body/json-body.ts'
import { isForm, readForm } from '../../http/body/multipart.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'

/** A validated request for images. Its files are on the disk until the body is disposed of. */
export interface ImageBody extends AsyncDisposable {
  /** The body as it was sent, with the files of a form as short addresses that are keys of `call.inline`. */
  sent: unknown
  request: ImageRequest
}

/** A route for images. */
export interface ImageRoute {
  task: ImageTask
  /** Whether a request needs no prompt. */
  variation?: boolean
}

/** A variation is an edit with an empty prompt. */
const withoutPrompt = (sent: unknown): unknown =>
  sent !== null && typeof sent === 'object' && (sent as { prompt?: unknown }).prompt == null
    ? { ...sent, prompt: '' }
    : sent

/** Reads JSON or a form. Throws Failure for an invalid request. */
export async function readImageBody(
  { task, variation = false }: ImageRoute,
  call: Call,
  owners: Pick<Owners, 'admission' | 'config' | 'cpu' | 'files'>,
): Promise<ImageBody> {
  const check = (sent: unknown) => checked(task, variation ? withoutPrompt(sent) : sent)
  if (!isForm(call.req)) return { ...check(await readJson(call, owners)), async [Symbol.asyncDispose]() {} }
  const form = await readForm(call, { files: { image: maxSources, mask: 1 }, maxBytes: imageRules.maxBytes }, owners)
  try {
    const sent = formValues(form.fields, imageRequests[operationOf(task)].shape)
    const inline = new Map<string, MediaInput>()
    for (const [name, files] of form.files) {
      const addresses = files.map(({ path, bytes }) => {
        // No client can have sent this name.
        const address = `form:${randomUUID()}`
        inline.set(address, { path, bytes })
        return address
      })
      sent[name] = addresses.length === 1 ? addresses[0] : addresses
    }
    call.inline = inline
    return { ...check(sent), [Symbol.asyncDispose]: () => form[Symbol.asyncDispose]() }
  } catch (thrown) {
    await form[Symbol.asyncDispose]()
    throw thrown
  }
}

function checked(task: ImageTask, sent: unknown): Pick<ImageBody, 'sent' | 'request'> {
  const read = imageRequests[operationOf(task)].safeParse(sent)
  if (!read.success) throw failureOfIssues(read.error, sent)
  return { sent, request: read.data }
}

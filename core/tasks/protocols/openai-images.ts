import { Failure } from '../../failure.ts'
import { listOf } from '../../json.ts'
import type { EngineCall } from '../../models/engine-call.ts'
import type { EngineRoute } from '../../models/engine-traits.ts'
import type { Lease } from '../../models/fleet.ts'
import { mediaFor } from '../../schemas/task.ts'
import { askFiles } from './ask-files.ts'
import { formBody } from './form-body.ts'
import type { EngineFile, GenerationCall } from './generation-call.ts'
import { type Completed, workerError } from './infer-generation.ts'
import { checkFields, type FieldValue, formFields, furtherFields, imageFiles, openaiSize } from './openai-fields.ts'
import type { Download, GenerationProtocol } from './protocol.ts'
import { takeUrl } from './take-url.ts'

/** These engines send nothing before all images are done. */
const patienceMs = 600_000
/** Characters of a rewritten prompt. */
const maxPrompt = 32_000

/** The image routes of OpenAI: JSON for generations, a form for edits, base64 or URLs in the answer. */
export const openaiImages: GenerationProtocol = {
  name: 'openai-images',
  paths: {
    'create-image': '/v1/images/generations',
    'edit-image': '/v1/images/edits',
    inpaint: '/v1/images/edits',
  },
  alphaMasks: true,
  async generate(lease, route, call, signal, report, download) {
    signal.throwIfAborted()
    checkFields(lease.modelId, call, route, report)
    const request = { ...(await requestOf(route, call)), path: route.path, patienceMs }
    const { answer, fileOf } = await askFiles(lease, request, { folder: call.folder, prefix: 'image' }, signal)
    const items = listOf(answer.data) as (ImageItem | null)[]
    if (items.length === 0) throw workerError(lease.modelId, 'answered without an image')
    const files: EngineFile[] = []
    for (const [at, item] of items.entries()) {
      const name =
        typeof item?.b64_json === 'string'
          ? await fileOf(item.b64_json)
          : await imageAt(lease, item?.url, { folder: call.folder, name: `fetched-${at}` }, signal, download)
      files.push({ name, kind: 'image' })
    }
    const revised = items[0]?.revised_prompt
    return {
      type: 'completed',
      files,
      seed_used: call.inputs.seed,
      prompt: typeof revised === 'string' && revised !== '' ? revised.slice(0, maxPrompt) : undefined,
    } satisfies Completed
  },
}

interface ImageItem {
  b64_json?: unknown
  url?: unknown
  revised_prompt?: unknown
}

async function requestOf(route: EngineRoute, call: GenerationCall): Promise<Pick<EngineCall, 'body' | 'contentType'>> {
  const { inputs, task } = call
  const fields: Record<string, FieldValue> = {
    model: call.model,
    prompt: inputs.prompt,
    n: inputs.num_images,
    size: openaiSize(inputs),
    ...(inputs.quality ? { quality: inputs.quality } : {}),
    ...(inputs.background ? { background: inputs.background } : {}),
    // PNG is what OpenAI makes without this field, which its older models refuse.
    ...(inputs.output_format === 'png' ? {} : { output_format: inputs.output_format }),
    ...furtherFields(call, route),
  }
  if (mediaFor(task).length === 0) return { body: JSON.stringify(fields) }
  const images = inputs.images ?? (inputs.image === null ? [] : [inputs.image])
  const name = images.length > 1 ? 'image[]' : 'image'
  const mask: [string, string][] = inputs.mask === null ? [] : [['mask', inputs.mask]]
  const files = await imageFiles([...images.map((path): [string, string] => [name, path]), ...mask])
  return formBody(formFields(fields), files)
}

/** Stores the image at a URL of an answer and resolves with its name. */
async function imageAt(
  lease: Lease,
  url: unknown,
  target: { folder: string; name: string },
  signal: AbortSignal,
  download: Download,
): Promise<string> {
  if (typeof url !== 'string' || url === '')
    throw workerError(lease.modelId, 'answered with an image that has neither b64_json nor url')
  try {
    await takeUrl(lease, url, target, signal, download)
  } catch (thrown) {
    // The caller did not send this URL.
    if (thrown instanceof Failure && thrown.code === 'url_fetch_failed')
      throw workerError(lease.modelId, 'answered with the URL of an image that could not be fetched')
    throw thrown
  }
  return target.name
}

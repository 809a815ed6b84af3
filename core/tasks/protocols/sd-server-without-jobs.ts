import { Failure, invalid } from '../../failure.ts'
import { listOf } from '../../json.ts'
import type { Lease } from '../../models/fleet.ts'
import { isVideoTask } from '../../schemas/task.ts'
import type { RunReport } from '../run-job.ts'
import { type AnswerWithFiles, askFiles } from './ask-files.ts'
import { jsonWithFiles } from './base64-file.ts'
import type { GenerationCall } from './generation-call.ts'
import { type Completed, workerError } from './infer-generation.ts'

type Fields = Record<string, unknown>

/** Milliseconds for one answer: the job's own deadline ends it earlier. */
const patienceMs = 24 * 3_600_000
const lost = 'This build of sd-server has no jobs. Its requests cannot be cancelled, and it makes no videos.'
/** With these tags a prompt would set fields of the engine. */
const tags = /<\/?sd_cpp_extra_args>/g

/**
 * Runs a generation on servers without jobs: with `/v1/images/generations` from a text, else with `/sdapi/v1/*`, which
 * writes only PNG. Both get the engine's own fields as a part of the prompt. `/v1/images/edits` is not used, because it has
 * no `strength`. Rejects with Failure `unsupported_task` if the server has none of them.
 */
export async function sdServerWithoutJobs(
  lease: Lease,
  call: GenerationCall,
  fields: Fields,
  signal: AbortSignal,
  report: Pick<RunReport, 'log'>,
): Promise<Completed> {
  const { task, inputs, folder } = call
  const unable = () =>
    new Failure('unsupported_task', `The engine of '${lease.modelId}' has no route for '${task}'. Update sd-server.`)
  if (isVideoTask(task)) throw unable()
  report.log('WARN', lost)
  const { prompt: _, init_image, ref_images, mask_image, output_format, output_compression: __, ...rest } = fields
  const prompt = `${inputs.prompt.replaceAll(tags, '')} <sd_cpp_extra_args>${JSON.stringify(rest)}</sd_cpp_extra_args>`
  const send = async (path: string, value: object) => {
    const prefix = `result${path.replaceAll('/', '-')}`
    return askFiles(lease, { path, body: await jsonWithFiles(value), patienceMs }, { folder, prefix }, signal)
  }
  const { width, height, num_images } = inputs

  async function openAiRoute(): Promise<Completed> {
    const value = { prompt, n: num_images, size: `${width}x${height}`, output_format }
    const answer = await send('/v1/images/generations', value)
    const data = listOf(answer.answer.data) as ({ b64_json?: unknown } | null)[]
    return filesOf(
      lease,
      answer,
      data.map(one => one?.b64_json),
      call,
    )
  }

  async function webUiRoute(): Promise<Completed> {
    if (output_format !== 'png') throw invalid('output_format', onlyPng(lease.modelId), 'unsupported_parameter')
    const changes = init_image
      ? { init_images: [init_image], mask: mask_image, denoising_strength: inputs.strength }
      : { extra_images: ref_images }
    const answer = await send(init_image ? '/sdapi/v1/img2img' : '/sdapi/v1/txt2img', {
      prompt,
      negative_prompt: inputs.negative_prompt ?? '',
      width,
      height,
      seed: inputs.seed,
      steps: inputs.num_inference_steps,
      cfg_scale: inputs.guidance_scale,
      batch_size: num_images,
      ...changes,
    })
    return filesOf(lease, answer, answer.answer.images, call)
  }

  for (const route of init_image || ref_images ? [webUiRoute] : [openAiRoute, webUiRoute])
    try {
      return await route()
    } catch (thrown) {
      if (!(thrown instanceof Failure) || thrown.code !== 'unsupported_task') throw thrown
    }
  throw unable()
}

const onlyPng = (modelId: string): string =>
  `The engine of '${modelId}' is an old build of sd-server, which writes only PNG here. Send 'output_format' png, or update it.`

async function filesOf(
  lease: Lease,
  { fileOf }: AnswerWithFiles,
  values: unknown,
  { inputs }: GenerationCall,
): Promise<Completed> {
  if (!Array.isArray(values) || values.length === 0) throw workerError(lease.modelId, 'answered without an image')
  const files: Completed['files'] = []
  for (const value of values.slice(0, inputs.num_images)) files.push({ name: await fileOf(value), kind: 'image' })
  return { type: 'completed', files, seed_used: inputs.seed }
}

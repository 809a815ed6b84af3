import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Limits } from '../../config.ts'
import type { Cpu } from '../../cpu/cpu.ts'
import { Failure, invalid } from '../../failure.ts'
import type { Files } from '../../files/files.ts'
import type { EngineWorkspace } from '../../files/workspaces.ts'
import type { openDownload } from '../../media/fetch.ts'
import type { MediaKind } from '../../media/media.ts'
import { modelOfWork } from '../../models/model-names.ts'
import type { Registry } from '../../models/registry.ts'
import { operationOf } from '../../schemas/task.ts'
import type { JobRecord, NewLibraryItem } from '../../store/store.ts'
import { modelFor } from '../catalog.ts'
import type { EngineInputs, GenerationCall, GenerationInputs } from '../protocols/generation-call.ts'
import type { Completed } from '../protocols/infer-generation.ts'
import { generationProtocol } from '../protocols/protocols.ts'
import { taskRecord } from '../registry.ts'
import type { RunJob, RunReport, TaskResult } from '../run-job.ts'
import { checkAbilities } from './abilities.ts'
import { pricedImage, usageOfFiles } from './metering.ts'
import { type OutputOwners, type Outputs, takeOutputs } from './outputs.ts'
import { makesImages } from './prepare.ts'

interface GenerationRunnerOptions extends OutputOwners {
  files: OutputOwners['files'] & Pick<Files, 'find' | 'workspace' | 'workspaceFor'>
  registry: Pick<Registry, 'find' | 'catalog'>
  cpu: OutputOwners['cpu'] & Pick<Cpu, 'alphaMask'>
  /** Stores the file at a URL that an engine answered. */
  download: ReturnType<typeof openDownload>
  limits: Pick<Limits, 'output_size' | 'cancel_grace'>
}

const mediaKinds: readonly MediaKind[] = ['image', 'mask', 'video', 'audio']

/** Runs generation jobs: the engine writes into a folder of the run, from which its files are copied. */
export function openGenerationRunner(owners: GenerationRunnerOptions) {
  const { files, registry, limits, download, cpu } = owners

  /** Replaces the ids of files in the stored inputs by paths that the engine can read. */
  async function inputsOf(job: JobRecord, stored: GenerationInputs, workspace: EngineWorkspace): Promise<EngineInputs> {
    const { prompt_expansion: _, original_prompt: __, output_compression, ...inputs } = stored
    // Compressed once, by infer: two lossy steps would lose more than the request asks for.
    if (output_compression !== undefined) inputs.output_format = 'png'
    const share = async (kind: MediaKind, id: string) => {
      const file = await files.find(job.organizationId, id)
      if (!file)
        throw invalid(
          `${kind}_url`,
          `The file ${id}, the ${kind} of this job, no longer exists. Send it again.`,
          'not_found',
        )
      return workspace.share(files.pathOf(file))
    }
    for (const kind of mediaKinds) {
      const id = stored[kind]
      if (id !== null) inputs[kind] = await share(kind, id)
    }
    if (stored.images) {
      const [, ...more] = stored.images
      inputs.images = [inputs.image!]
      for (const id of more) inputs.images.push(await share('image', id))
    }
    return inputs
  }

  async function run(...[job, lease, signal, report]: Parameters<RunJob>): Promise<TaskResult> {
    const model = modelOfWork(registry.find, job)
    const entry = registry.catalog().get(job.modelId)
    const record = taskRecord(job.task)
    if (!model || !entry || record.runner !== 'generation' || !entry.tasks.includes(job.task))
      throw new Failure('model_not_found', `The model '${job.modelId}' is no longer offered here for ${job.task}.`)
    const stored = JSON.parse(job.inputs) as GenerationInputs
    const task = record.engineTask(stored)
    modelFor(taskRecord(task), job.modelId, registry.catalog())
    checkAbilities({ ...stored, images: stored.images?.length ?? (stored.image ? 1 : 0), imageField: 'image' }, entry)
    await using workspace = await files.workspaceFor(job.id, lease.engineId)
    const { folder } = workspace
    const inputs = await inputsOf(job, stored, workspace)
    // An engine that writes into a deleted folder could crash and fail all its other requests.
    const keepFolder = () => workspace.linger(2 * limits.cancel_grace)
    signal.addEventListener('abort', keepFolder, { once: true })
    const route = entry.traits.routes[operationOf(task)]!
    const protocol = generationProtocol(route)
    if (protocol.alphaMasks && inputs.mask !== null && inputs.image !== null) {
      const mask = join(folder, 'alpha-mask.png')
      await writeFile(mask, await cpu.alphaMask(inputs.mask, inputs.image), { mode: 0o600 })
      inputs.mask = mask
    }
    const call: GenerationCall = { task, model: entry.traits.upstreamId, inputs, folder }
    const began = performance.now()
    const completed = await protocol.generate(lease, route, call, signal, previewLimit(report, inputs), file =>
      download({ ...file, organizationId: job.organizationId }),
    )
    const seconds = Math.round(performance.now() - began) / 1000
    await using own = await files.workspace(job.id)
    const outputs = await takeOutputs(
      {
        job,
        task,
        inputs: stored,
        folder,
        ownFolder: own.folder,
        maxBytes: limits.output_size,
        converts: protocol.anyImageFormat === true,
      },
      completed,
      owners,
    )
    const ran: TaskResult = {
      result: JSON.stringify(
        record.resultOf(stored, completed, outputs.results, { inference: seconds, now: Date.now() }),
      ),
      usage: usageOfFiles(makesImages(task) ? 'images' : 'video', stored, outputs.results),
      price: model.price,
      image: makesImages(task) ? pricedImage(stored) : undefined,
      files: outputs.files,
      library: libraryItems(job, stored, completed, outputs),
    }
    // The job was cancelled after the engine had finished, so its files are removed.
    if (signal.aborted) {
      await files.discard(ran.files)
      throw signal.reason
    }
    return ran
  }
  return Object.assign(run, { undo: (ran: Pick<TaskResult, 'files'>) => files.discard(ran.files) })
}

/** Returns the report, with at most the requested number of previews. */
function previewLimit(report: RunReport, { previews = 0, num_images }: EngineInputs): RunReport {
  const left = Array.from({ length: num_images }, () => previews)
  return {
    progress: fraction => report.progress(fraction),
    log: (level, message) => report.log(level, message),
    preview(preview) {
      if (left[preview.image] && left[preview.image]!-- > 0) report.preview?.(preview)
    },
  }
}

function libraryItems(
  job: JobRecord,
  inputs: GenerationInputs,
  { seed_used, prompt }: Completed,
  { results }: Outputs,
): NewLibraryItem[] {
  return results.map(file => {
    const isVideo = file.content_type.startsWith('video/')
    return {
      id: file.file_id,
      organizationId: job.organizationId,
      jobId: job.id,
      task: job.task,
      modelId: job.modelId,
      prompt: prompt ?? inputs.prompt,
      seed: seed_used,
      fps: isVideo ? (file.fps ?? inputs.fps) : null,
      numFrames: isVideo ? (file.num_frames ?? inputs.num_frames) : null,
      thumbnailId: file.thumbnail_id ?? null,
      createdAt: Date.now(),
    }
  })
}

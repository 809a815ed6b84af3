import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { Failure } from '../../../failure.ts'
import { type Graph, maxGraphBytes, parseGraph } from '../../../models/comfyui/graph.ts'
import { mappingFault } from '../../../models/comfyui/graph-fault.ts'
import { type ComfyuiSettings, inputTargets } from '../../../models/comfyui/settings.ts'
import type { EngineRoute } from '../../../models/engine-traits.ts'
import type { Lease } from '../../../models/fleet.ts'
import { generationTasks, isVideoTask, operationOf } from '../../../schemas/task.ts'
import type { RunReport } from '../../run-job.ts'
import type { EngineInputs, GenerationCall } from '../generation-call.ts'
import type { Completed } from '../infer-generation.ts'
import type { GenerationProtocol } from '../protocol.ts'
import { downloadOutput, upload } from './files.ts'
import { failureIn, type SavedFile, savedFiles } from './history.ts'
import { runPrompt } from './run-prompt.ts'

const promptPath = '/prompt'

/**
 * The protocol of ComfyUI's server: the graph of the model is filled with the inputs of the job, queued, followed over a
 * WebSocket, and its files are fetched. Source: server.py and execution.py of ComfyUI 0.33.
 */
export const comfyui: GenerationProtocol = {
  name: 'comfyui',
  paths: Object.fromEntries(generationTasks.map(task => [operationOf(task), promptPath])),
  // SaveImage writes PNG, and nodes for other formats cannot be told which.
  anyImageFormat: true,
  generate,
}

async function generate(
  lease: Lease,
  { path, graph }: EngineRoute,
  { inputs, folder, task }: GenerationCall,
  signal: AbortSignal,
  report: RunReport,
): Promise<Completed> {
  if (!graph) throw new Error('a route of the protocol comfyui has a graph')
  const { file, settings } = graph
  const base = path.slice(0, -promptPath.length)
  // Unique for each run; an engine that infer starts writes into the folder of the run by this name.
  const jobFolder = basename(folder)
  const template = await readTemplate(file, settings, Object.keys(inputs.extra))
  const files: Record<string, string> = {}
  for (const [parameter, from] of filesIn(inputs))
    if (inputTargets(settings, parameter).length > 0)
      files[parameter] = await upload(
        lease,
        `${base}/upload/image`,
        { parameter, file: from, folder: jobFolder },
        signal,
      )
  const filled = fillGraph(template, settings, { inputs, files, folder: jobFolder })
  const entry = await runPrompt(lease, { base, graph: filled }, signal, {
    progress: fraction => report.progress(fraction),
    preview: spreadPreviews(inputs.previews ?? 0, report),
  })
  const failure = failureIn(entry, lease.modelId)
  if (failure) throw failure
  const chosen = chooseFiles(
    savedFiles(entry, settings.outputs),
    { count: inputs.num_images, isVideo: isVideoTask(task) },
    lease.modelId,
  )
  const fetched: Completed['files'] = []
  for (const [at, saved] of chosen.entries())
    fetched.push(await downloadOutput(lease, `${base}/view`, { file: saved, folder, at }, signal))
  return { type: 'completed', files: fetched, seed_used: inputs.seed }
}

/** Reads the graph of a model. The file may have changed since the configuration was read, so it is checked again. */
async function readTemplate(file: string, settings: ComfyuiSettings, extra: string[]): Promise<Graph> {
  const unusable = (what: string) =>
    new Failure('worker_error', `${what} Tell the operator of this server.`, { final: true })
  let text: string
  try {
    await using handle = await open(file)
    if ((await handle.stat()).size > maxGraphBytes) throw new Error('too large')
    text = await handle.readFile('utf8')
  } catch (cause) {
    throw unusable(
      `The graph file of the model cannot be read: ${(cause as NodeJS.ErrnoException).code ?? 'too large'}.`,
    )
  }
  let graph: Graph
  try {
    graph = parseGraph(text, basename(file))
  } catch (thrown) {
    throw unusable(Failure.from(thrown).message)
  }
  const fault = mappingFault(graph, { comfyui: settings, tasks: [], extra_params: extra })
  if (fault) throw unusable(`The graph ${basename(file)} does not fit its mapping: ${fault}`)
  return graph
}

/** Returns the input files by the parameter that names them in the mapping. */
function filesIn({ image, images, mask, video, audio }: EngineInputs): [parameter: string, path: string][] {
  const further = (images ?? []).slice(1).map((path, at): [string, string] => [`image_${at + 2}`, path])
  const named = Object.entries({ image, mask, video, audio })
  return [...named.filter((one): one is [string, string] => one[1] !== null), ...further]
}

/** Returns the files that are the result. A graph may save more images than the request asks for. */
function chooseFiles(
  saved: readonly SavedFile[],
  { count, isVideo }: { count: number; isVideo: boolean },
  modelId: string,
): SavedFile[] {
  const kind = isVideo ? 'video' : 'image'
  const chosen = saved.filter(file => file.kind === kind)
  if (chosen.length === 0) {
    const names = saved.slice(0, 5).map(({ filename }) => `'${filename.slice(0, 64)}'`)
    throw new Failure(
      'worker_error',
      `The graph of '${modelId}' saved no ${kind}${names.length > 0 ? ` but ${names.join(', ')}` : ''}. It needs a node that saves ${isVideo ? 'a video as MP4' : 'images'}, and 'comfyui.outputs' must name it.`,
      { final: true },
    )
  }
  const other = isVideo ? chosen.find(({ filename }) => !/\.mp4$/i.test(filename)) : undefined
  if (other)
    throw new Failure(
      'worker_error',
      `The graph of '${modelId}' saved '${other.filename.slice(0, 64)}', which is no MP4. Choose the format mp4 in the node that saves the video.`,
      { final: true },
    )
  return chosen.slice(0, count)
}

/** Passes on as many previews as were asked for, spread over the run: ComfyUI sends one for each step. */
function spreadPreviews(wanted: number, report: RunReport): (bytes: Buffer, fraction: number) => void {
  let sent = 0
  return (bytes, fraction) => {
    if (sent >= wanted || fraction < sent / (wanted + 1)) return
    sent++
    report.preview?.({ image: 0, bytes })
  }
}

/** What is written into a graph. */
interface Filling {
  inputs: EngineInputs
  /** Names of the uploaded files, by the parameter that they are the value of. */
  files: Readonly<Record<string, string>>
  /** A folder for the files that the graph saves. It differs for each job. */
  folder: string
}

/**
 * Returns the graph with the values of a job. Parameters that the request did not set keep the graph's own values.
 * Saving nodes write to a folder of the job: with the same prompt and seed as before, ComfyUI would otherwise save nothing
 * and answer with the files of the earlier job, which may no longer exist.
 */
export function fillGraph(template: Graph, settings: ComfyuiSettings, { inputs, files, folder }: Filling): Graph {
  const graph = structuredClone(template)
  for (const [name, value] of valuesOf(inputs, files))
    for (const { node, input } of inputTargets(settings, name)) graph[node]!.inputs[input] = value
  for (const { inputs: own } of Object.values(graph)) {
    const { filename_prefix: prefix } = own
    if (typeof prefix === 'string') own.filename_prefix = `${folder}/${prefix.split(/[/\\]/).at(-1) || 'output'}`
  }
  return graph
}

function valuesOf(inputs: EngineInputs, files: Filling['files']): [name: string, value: unknown][] {
  const { prompt, negative_prompt, seed, width, height, num_images } = inputs
  const { num_inference_steps, guidance_scale, strength, num_frames, fps, extra, defaulted = [] } = inputs
  const sent = Object.entries({ width, height, num_inference_steps, guidance_scale, strength, num_frames, fps })
  return [
    ['prompt', prompt],
    ...(negative_prompt === null ? [] : [['negative_prompt', negative_prompt] as [string, unknown]]),
    ['seed', seed],
    ['num_images', num_images],
    ...sent.filter(([name]) => !defaulted.includes(name)),
    ...Object.entries(extra),
    ...Object.entries(files),
  ]
}

import type { Graph } from '../../../models/comfyui/graph.ts'
import { type ComfyuiSettings, inputTargets } from '../../../models/comfyui/settings.ts'
import type { EngineInputs } from '../generation-call.ts'

/** What is written into a graph. */
export interface Filling {
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

import type { EngineField, EngineTraits } from '../../core/models/engine-traits.ts'
import type { Model } from '../../core/models/model.ts'
import type { Operation } from '../../core/schemas/task.ts'
import { comfyui } from '../../core/tasks/protocols/comfyui/comfyui.ts'
import { inferGeneration } from '../../core/tasks/protocols/infer-generation.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openaiImages } from '../../core/tasks/protocols/openai-images.ts'
import { classification, openaiText } from '../../core/tasks/protocols/openai-text.ts'
import { openaiVideos } from '../../core/tasks/protocols/openai-videos.ts'
import type { EngineProtocol } from '../../core/tasks/protocols/protocol.ts'

/** The path and the protocol by which an engine serves each operation. */
export type Routes = EngineTraits['routes']

/** Returns the routes of these protocols at their usual paths, for some operations or for all. */
export function routesOf(protocols: readonly EngineProtocol[], operations?: readonly Operation[]): Routes {
  const routes: Routes = {}
  for (const { name: protocol, paths } of protocols)
    for (const [operation, path] of Object.entries(paths) as [Operation, string][])
      if (operations?.includes(operation) !== false) routes[operation] = { protocol, path }
  return routes
}

/** The routes of a ComfyUI that runs the graph of this model. `prefix` is the path of its address. */
export function comfyuiRoutes(
  { source = '', comfyui: settings }: Pick<Model, 'source' | 'comfyui'>,
  prefix = '',
): Routes {
  const routes = routesOf([comfyui])
  for (const route of Object.values(routes)) {
    route.path = prefix + route.path
    if (settings) route.graph = { file: source, settings }
  }
  return routes
}

/** Returns the routes with the fields that the engine takes in addition to those of OpenAI. */
export function withFields(routes: Routes, fields: readonly EngineField[]): Routes {
  for (const route of Object.values(routes)) route.fields = fields
  return routes
}

/** Returns the routes with what deleting an unfinished video does to the work. */
export function withDeletion(routes: Routes, deletion: 'stops' | 'continues'): Routes {
  for (const route of Object.values(routes)) route.deletion = deletion
  return routes
}

/** Every route of an engine about which nothing is known but its protocol for images and videos. */
export const everyRoute = ({ protocol }: Pick<Model, 'protocol'>): Routes =>
  routesOf([
    openaiText,
    classification,
    openaiAudio,
    ...(protocol === 'openai' ? [openaiImages, openaiVideos] : [inferGeneration]),
  ])

import { imageCount } from '../../core/models/comfyui/settings.ts'
import type { EngineField, EngineRoute, EngineTraits } from '../../core/models/engine-traits.ts'
import type { Model } from '../../core/models/model.ts'
import type { Operation } from '../../core/schemas/task.ts'
import { comfyui } from '../../core/tasks/protocols/comfyui/comfyui.ts'
import { inferGeneration } from '../../core/tasks/protocols/infer-generation.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openaiImages } from '../../core/tasks/protocols/openai-images.ts'
import { classification, openaiText } from '../../core/tasks/protocols/openai-text.ts'
import { openaiVideos } from '../../core/tasks/protocols/openai-videos.ts'
import { piper } from '../../core/tasks/protocols/piper.ts'
import type { EngineProtocol } from '../../core/tasks/protocols/protocol.ts'
import { sdServer } from '../../core/tasks/protocols/sd-server.ts'
import { type Abilities, allFeatures } from './preset.ts'

/** The path and the protocol by which an engine serves each operation. */
type Routes = EngineTraits['routes']

/** Fields of diffusion models that engines take for images and videos in addition to those of OpenAI. */
export const diffusionFields: readonly EngineField[] = [
  'seed',
  'negative_prompt',
  'num_inference_steps',
  'guidance_scale',
]

const protocols = {
  openaiText,
  classification,
  openaiAudio,
  openaiImages,
  openaiVideos,
  inferGeneration,
  piper,
  sdServer,
  comfyui,
} satisfies Record<string, EngineProtocol>

/**
 * Returns the routes of protocols at their usual paths, for the named operations of each or for all of them. `facts`:
 * further facts of every route.
 */
export function routesOf(
  served: { [name in keyof typeof protocols]?: 'all' | readonly Operation[] },
  facts: Partial<EngineRoute> = {},
): Routes {
  const routes: Routes = {}
  for (const [key, operations] of Object.entries(served)) {
    const { name: protocol, paths }: EngineProtocol = protocols[key as keyof typeof protocols]
    for (const [operation, path] of Object.entries(paths) as [Operation, string][])
      if (operations === 'all' || operations.includes(operation)) routes[operation] = { protocol, path, ...facts }
  }
  return routes
}

/** What a ComfyUI can do that runs the graph of this model. `prefix` is the path of its address. */
export function comfyuiAbilities({ source = '', comfyui: settings }: Model, prefix = ''): Abilities {
  const routes = routesOf({ comfyui: 'all' }, settings && { graph: { file: source, settings } })
  for (const route of Object.values(routes)) route.path = prefix + route.path
  return { routes, inputImages: settings && imageCount(settings) }
}

/**
 * What is assumed of an engine about which nothing is known but its protocol for images and videos. `prefix` replaces the
 * `/v1` of every route; without it `/v1` stays.
 */
export function assumedAbilities(model: Model, prefix = ''): Abilities {
  const generation = model.protocol === 'openai' ? ['openaiImages', 'openaiVideos'] : ['inferGeneration']
  const names = ['openaiText', 'classification', 'openaiAudio', ...generation]
  const routes = routesOf(Object.fromEntries(names.map(name => [name, 'all' as const])))
  if (prefix !== '') for (const route of Object.values(routes)) route.path = prefix + route.path.slice('/v1'.length)
  return {
    ...(model.comfyui ? comfyuiAbilities(model, prefix) : { routes }),
    features: allFeatures,
    base64: true,
    streamUsage: 'end',
    namedTool: true,
    promptLists: true,
  }
}

import { invalid } from '../../failure.ts'
import { type ComfyuiSettings, inputTargets } from '../../models/comfyui/settings.ts'
import type { EngineInputs } from '../protocols/generation-call.ts'

/** Inputs that a graph sets itself if the request does not. */
const optional = [
  'seed',
  'width',
  'height',
  'num_inference_steps',
  'guidance_scale',
  'strength',
  'num_frames',
  'fps',
] as const satisfies readonly (keyof EngineInputs)[]

/** An input that a request sets, and the field by which it does. */
export type SetInputs = Readonly<Record<string, string | undefined>>

/**
 * Returns the inputs that a request did not set and that the graph of the model therefore decides, or does not take.
 * Empty for models without a graph. `fromMedia` follow from the image, video or audio of the request. Throws Failure
 * `unsupported_parameter` if the request sets an input that the graph does not take.
 */
export function defaultedInputs(
  set: SetInputs,
  settings: ComfyuiSettings | undefined,
  fromMedia: readonly (keyof EngineInputs)[] = [],
): Pick<EngineInputs, 'defaulted'> {
  if (!settings) return {}
  const takes = (name: string) => inputTargets(settings, name).length > 0
  for (const [name, param] of Object.entries(set))
    if (param !== undefined && !takes(name))
      throw invalid(
        param,
        `'${param}' has no effect on this model: its graph does not take it. Leave it out; the graph takes ${Object.keys(settings.inputs).join(', ')}.`,
        'unsupported_parameter',
      )
  const isDecided = (name: keyof EngineInputs) => name === 'seed' || fromMedia.includes(name)
  return { defaulted: optional.filter(name => set[name] === undefined && !(isDecided(name) && takes(name))) }
}

/** Returns each name with the field that sets it, where its value is set. */
export const setFields = (values: Record<string, unknown>, sent: Readonly<Record<string, string>> = {}): SetInputs =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value == null ? [] : [[name, sent[name] ?? name]])),
  )

/** Returns the stored inputs of a job without those that its request did not set. */
export function withoutDefaulted<Inputs extends { defaulted?: readonly string[] }>(stored: Inputs): Partial<Inputs> {
  const { defaulted = [] } = stored
  return Object.fromEntries(
    Object.entries(stored).filter(([name]) => name !== 'defaulted' && !defaulted.includes(name)),
  ) as Partial<Inputs>
}

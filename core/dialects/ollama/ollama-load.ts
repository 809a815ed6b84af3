import { Failure } from '../../failure.ts'
import { modelOf } from './ollama-body.ts'

/** A request without content, which asks to load or to unload a model. */
export interface LoadRequest {
  /** The name of the model as it was requested. */
  name: string
  modelId: string
  unload: boolean
  stream: boolean
}

interface Sent {
  model: string
  keep_alive?: string | number | null | undefined
  stream?: boolean | null | undefined
}

/** Whether `keep_alive` says that the model shall be unloaded at once: `0`, `"0"`, `"0s"`. */
const isNothing = (keepAlive: Sent['keep_alive']): boolean =>
  keepAlive === 0 || (typeof keepAlive === 'string' && /^0+(\.0+)?(ns|us|ms|s|m|h)?$/.test(keepAlive))

/**
 * Returns the failure of a request that a model cannot answer, because it has no content. The route reads from it what to
 * load or unload instead.
 */
export const onlyLoads = ({ model, keep_alive, stream }: Sent, param: string): Failure =>
  new Failure(
    'missing_required_parameter',
    `'${param}' has nothing to answer. Send text, or leave it out to load the model.`,
    {
      param,
      facts: { model, unload: isNothing(keep_alive), stream: stream !== false },
    },
  )

/** Returns the request to load or unload that the failure stands for; undefined for other failures. */
export function loadRequestOf({ code, facts }: Failure): LoadRequest | undefined {
  if (code !== 'missing_required_parameter' || typeof facts?.model !== 'string') return undefined
  return {
    name: facts.model,
    modelId: modelOf(facts.model),
    unload: facts.unload === true,
    stream: facts.stream === true,
  }
}

import { isDataUrl } from '../../data-url.ts'
import { Failure, invalid } from '../../failure.ts'
import type { OllamaChatRequest, OllamaGenerateRequest } from './ollama-schemas.ts'

type Request = OllamaChatRequest | OllamaGenerateRequest
type Options = NonNullable<Request['options']>

/** First characters of the formats in base64. */
const start = /^\s*(iVBOR|\/9j\/|R0lG|UklG|AAAA..Z0|Qk)/

/** Returns an image in base64 as a part of a message. Throws Failure `invalid_image`. */
function imagePart(image: string, param: string): object {
  const url = isDataUrl(image) ? image : start.test(image.slice(0, 64)) ? `data:;base64,${image}` : undefined
  if (url) return { type: 'image_url', image_url: { url } }
  throw invalid(param, `'${param}' is no image. Send a PNG, JPEG, WebP, GIF or AVIF file in base64.`, 'invalid_image')
}

/** Returns the content of a message: text, with its images if it has any. `path` names them in failures. */
export function ollamaContent(
  text: string | null | undefined,
  images: readonly string[] | null | undefined,
  path: string,
): string | object[] {
  if (!images || images.length === 0) return text ?? ''
  return [
    ...(text ? [{ type: 'text', text }] : []),
    ...images.map((image, at) => imagePart(image, `${path}images[${at}]`)),
  ]
}

const sampled = (options: Options): Record<string, unknown> => ({
  temperature: options.temperature,
  top_p: options.top_p,
  top_k: options.top_k,
  min_p: options.min_p,
  seed: options.seed,
  stop: options.stop,
  presence_penalty: options.presence_penalty,
  frequency_penalty: options.frequency_penalty,
  repetition_penalty: options.repeat_penalty,
  max_completion_tokens: (options.num_predict ?? 0) > 0 ? options.num_predict : undefined,
})

const responseFormat = (format: Request['format']): object | undefined => {
  if (format == null || format === '') return undefined
  if (format === 'json') return { type: 'json_object' }
  return { type: 'json_schema', json_schema: { name: 'answer', schema: format } }
}

/** How much a model thinks if the request only says that it shall. */
const usualEffort = 'medium'

const effortOf = (think: Request['think']): string | undefined => {
  if (think == null) return undefined
  if (think === 'max') return 'high'
  return typeof think === 'string' ? think : think ? usualEffort : 'none'
}

/** Returns the id of a model: to Ollama's clients `name` and `name:latest` are the same. */
export const modelOf = (name: string): string => name.replace(/:latest$/, '')

/** Returns the members of a chat completion's body that both of Ollama's requests have. */
export function sharedBody(request: Request): Record<string, unknown> {
  const { model, format, think, options, logprobs, top_logprobs } = request
  const body = {
    model: modelOf(model),
    response_format: responseFormat(format),
    reasoning_effort: effortOf(think),
    logprobs: logprobs === true ? true : undefined,
    top_logprobs: logprobs === true ? top_logprobs : undefined,
    ...(options ? sampled(options) : {}),
  }
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value != null))
}

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

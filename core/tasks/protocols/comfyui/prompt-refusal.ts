import { Failure } from '../../../failure.ts'
import { withoutLocations } from '../engine-text.ts'

type Value = Record<string, unknown>

const object = (value: unknown): Value =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Value) : {}
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Inputs by which nodes name the files of their models. */
const modelFile = /\.(safetensors|ckpt|pt|pth|bin|gguf|sft|onnx)$/i

/**
 * Returns the failure for an answer of `POST /prompt` that is not 200: what ComfyUI lacks or refuses, by node. Undefined
 * if the body is none of ComfyUI's. A graph that cannot run here is no mistake of the caller and is not retried.
 */
export function promptRefusal(body: string): Failure | undefined {
  if (!body.includes('"node_errors"')) return undefined
  let answer: Value
  try {
    answer = object(JSON.parse(body))
  } catch {
    return undefined
  }
  const error = object(answer.error)
  const engineText = withoutLines(`${text(error.message)} ${text(error.details)}`)
  const refused = (message: string) => new Failure('worker_error', message, { engineText, final: true })
  if (error.type === 'missing_node_type' || error.type === 'invalid_prompt') {
    const type = text(object(error.extra_info).class_type) || /'([^']+)'/.exec(text(error.message))?.[1]
    if (type)
      return refused(
        `The graph uses the node '${type}', which this ComfyUI does not have. Install its custom node and restart the engine.`,
      )
  }
  for (const [id, found] of Object.entries(object(answer.node_errors)).map(
    ([key, node]) => [key, object(node)] as const,
  ))
    for (const wrong of Array.isArray(found.errors) ? found.errors.map(object) : []) {
      const sentence = nodeError(`node '${id}' (${text(found.class_type)})`, wrong)
      return rangeErrors.has(text(wrong.type))
        ? new Failure('invalid_value', sentence, { engineText })
        : refused(sentence)
    }
  return refused(`ComfyUI refused the graph: ${engineText || 'it did not say why'}. Export it again.`)
}

/** Errors of numbers, which come from the request: the graph was run when it was exported. */
const rangeErrors: ReadonlySet<string> = new Set(['value_bigger_than_max', 'value_smaller_than_min'])

/** Describes what is wrong with one input of a node, as a sentence. */
function nodeError(node: string, { type, message, details, extra_info }: Value): string {
  const { input_name, received_value } = object(extra_info)
  const input = text(input_name)
  const value = typeof received_value === 'string' ? received_value : JSON.stringify(received_value)
  if (type === 'value_not_in_list' && modelFile.test(value))
    return `The graph uses the file '${value}' in ${node}, which this ComfyUI does not have. Put it into the folder of its models that '${input}' lists, or choose another file in the graph.`
  if (type === 'value_not_in_list')
    return `The graph sets '${input}' of ${node} to '${value}', which this ComfyUI does not offer. Change it in the graph.`
  if (type === 'required_input_missing')
    return `The graph does not set '${text(details) || input}' of ${node}. Export it again from this ComfyUI.`
  const why = withoutLocations(withoutLines(`${text(message)}: ${text(details)}`))
  return `ComfyUI refused '${input}' of ${node}: ${why}. Change the request or the graph.`
}

const withoutLines = (words: string): string =>
  words
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 400)

import { Failure, invalidValue } from '../../../failure.ts'
import { isObject, jsonOf, listOf, objectOf } from '../../../json.ts'
import { faultClass, oneLine, withoutLocations } from '../engine-text.ts'
import type { EngineFile } from '../generation-call.ts'

/** A file that a graph has saved, by the names that `/view` takes. */
export interface SavedFile {
  filename: string
  subfolder: string
  type: string
  kind: EngineFile['kind']
}

/** The result of a prompt as `/history` has it. Engine output: nothing about it is certain. */
export interface HistoryEntry {
  outputs: Record<string, unknown>
  status: Record<string, unknown>
}

type Value = Record<string, unknown>

/** Returns the entry of a prompt; undefined if the history does not have it yet. */
export function entryIn(history: Record<string, unknown>, promptId: string): HistoryEntry | undefined {
  if (!Object.hasOwn(history, promptId)) return undefined
  const { outputs, status } = objectOf(history[promptId])
  return { outputs: objectOf(outputs), status: objectOf(status) }
}

/** Names that custom and built-in nodes give to their lists of files. */
const fileLists = ['images', 'gifs', 'videos', 'video', 'audio'] as const
const kinds: readonly [pattern: RegExp, kind: EngineFile['kind']][] = [
  [/\.(png|jpe?g|webp)$/i, 'image'],
  [/\.(mp4|webm|mov|mkv|avi|gif)$/i, 'video'],
  [/\.(wav|flac|mp3|opus|ogg|m4a)$/i, 'audio'],
]

/** Returns the files of a result: those of the given nodes in their order, else every file that is no temporary preview. */
export function savedFiles({ outputs }: HistoryEntry, nodes: readonly string[] | undefined): SavedFile[] {
  const chosen = nodes ?? Object.keys(outputs)
  const found = chosen.flatMap(id => filesOf(objectOf(outputs[id])))
  return nodes ? found : found.filter(({ type }) => type !== 'temp')
}

const filesOf = (output: Record<string, unknown>): SavedFile[] =>
  fileLists.flatMap(name => listOf(output[name]).flatMap(one => fileOf(objectOf(one))))

function fileOf({ filename, subfolder, type }: Record<string, unknown>): SavedFile[] {
  if (typeof filename !== 'string') return []
  const kind = kinds.find(([pattern]) => pattern.test(filename))?.[1]
  return kind ? [{ filename, subfolder: text(subfolder), type: text(type, 'output'), kind }] : []
}

/**
 * Returns why a prompt has failed; undefined if it succeeded. The message names the node, because only the author of the
 * graph can change it. `stage` of the message: what ComfyUI reported for the prompt.
 */
export function failureIn({ status }: HistoryEntry, modelId: string): Failure | undefined {
  const messages = listOf(status.messages)
  const failed = (type: string) => messages.findLast(message => Array.isArray(message) && message[0] === type)
  const error = failed('execution_error') as [string, unknown] | undefined
  if (error) return nodeFailure(objectOf(error[1]), modelId)
  if (failed('execution_interrupted'))
    return new Failure(
      'worker_error',
      `The engine of '${modelId}' was interrupted by another program that uses this ComfyUI. Trying again may help.`,
    )
  if (status.status_str === 'error' || status.completed === false)
    return new Failure('worker_error', `The engine of '${modelId}' failed and did not say why. Its log may have more.`)
  return undefined
}

const memory = /out of memory|outofmemory|\boom\b|memoryerror|defaultcpuallocator|allocation on device/i

function nodeFailure(error: Record<string, unknown>, modelId: string): Failure {
  const engineText = `${text(error.exception_type)}: ${oneLine(text(error.exception_message))}`
  const node = `node '${text(error.node_id)}' (${text(error.node_type)})`
  if (memory.test(engineText))
    return new Failure(
      'worker_error',
      `The engine of '${modelId}' ran out of memory in ${node}. Try a smaller size or fewer frames.`,
      { engineText },
    )
  const why = faultClass(engineText)
  return new Failure(
    'worker_error',
    `The graph of '${modelId}' failed in ${node}${why ? `: ${why}` : `: ${withoutLocations(engineText).slice(0, 300)}`}.`,
    { engineText, final: why === undefined },
  )
}

const text = (value: unknown, otherwise = ''): string => (typeof value === 'string' ? value : otherwise)

/** Inputs by which nodes name the files of their models. */
const modelFile = /\.(safetensors|ckpt|pt|pth|bin|gguf|sft|onnx)$/i

/**
 * Returns the failure for an answer of `POST /prompt` that is not 200: what ComfyUI lacks or refuses, by node. Undefined
 * if the body is none of ComfyUI's. A graph that cannot run here is no mistake of the caller and is not retried.
 */
export function promptRefusal(body: string): Failure | undefined {
  if (!body.includes('"node_errors"')) return undefined
  const answer = jsonOf(body)
  if (!isObject(answer)) return undefined
  const error = objectOf(answer.error)
  const engineText = oneLine(`${text(error.message)} ${text(error.details)}`, 400)
  const refused = (message: string) => new Failure('worker_error', message, { engineText, final: true })
  if (error.type === 'missing_node_type' || error.type === 'invalid_prompt') {
    const type = text(objectOf(error.extra_info).class_type) || /'([^']+)'/.exec(text(error.message))?.[1]
    if (type)
      return refused(
        `The graph uses the node '${type}', which this ComfyUI does not have. Install its custom node and restart the engine.`,
      )
  }
  for (const [id, found] of Object.entries(objectOf(answer.node_errors)).map(
    ([key, node]) => [key, objectOf(node)] as const,
  ))
    for (const wrong of listOf(found.errors).map(objectOf)) {
      const sentence = nodeError(`node '${id}' (${text(found.class_type)})`, wrong)
      return rangeErrors.has(text(wrong.type)) ? invalidValue(sentence, { engineText }) : refused(sentence)
    }
  return refused(`ComfyUI refused the graph: ${engineText || 'it did not say why'}. Export it again.`)
}

/** Errors of numbers, which come from the request: the graph was run when it was exported. */
const rangeErrors: ReadonlySet<string> = new Set(['value_bigger_than_max', 'value_smaller_than_min'])

/** Describes what is wrong with one input of a node, as a sentence. */
function nodeError(node: string, { type, message, details, extra_info }: Value): string {
  const { input_name, received_value } = objectOf(extra_info)
  const input = text(input_name)
  const value = typeof received_value === 'string' ? received_value : JSON.stringify(received_value)
  if (type === 'value_not_in_list' && modelFile.test(value))
    return `The graph uses the file '${value}' in ${node}, which this ComfyUI does not have. Put it into the folder of its models that '${input}' lists, or choose another file in the graph.`
  if (type === 'value_not_in_list')
    return `The graph sets '${input}' of ${node} to '${value}', which this ComfyUI does not offer. Change it in the graph.`
  if (type === 'required_input_missing')
    return `The graph does not set '${text(details) || input}' of ${node}. Export it again from this ComfyUI.`
  const why = withoutLocations(oneLine(`${text(message)}: ${text(details)}`, 400))
  return `ComfyUI refused '${input}' of ${node}: ${why}. Change the request or the graph.`
}

import { readFileSync } from 'node:fs'
import { type Document, isMap, isPair, isScalar, isSeq } from 'yaml'
import { z } from 'zod'
import { Failure, type FailureDetail, invalidValue } from '../failure.ts'
import { nearest } from '../nearest.ts'
import { readYaml } from '../read-yaml.ts'
import { failureOfIssues, placeOf } from '../schemas/issues.ts'

/** Messages about errors in infer.yaml begin with the position: `infer.yaml:12:5: 'models[2].memory': …`. */

interface Read {
  value: unknown
  document: Document
  text: string
  path: string
  /** The JSON Schema of the file, for the names of known settings. */
  schema: object
}

/** Returns the failure of a file with wrong settings. The message is about the first; `details` lists all if several. */
export function faultOf(error: z.ZodError, read: Read): Failure {
  const found = error.issues.slice(0, 20).flatMap(issue => findings(issue, read))
  const [first] = found
  return invalidValue(`${placeIn(read.document, read.text, read.path, first!.at)}: ${first!.message}`, {
    details:
      found.length > 1
        ? found.map(({ at, message }): FailureDetail => {
            const place = placeIn(read.document, read.text, '', at)
            return { code: 'invalid_value', path: place.replace(/^:/, ''), message }
          })
        : undefined,
  })
}

function findings(
  issue: z.core.$ZodIssue,
  { value, document, schema }: Read,
): { at: PropertyKey[]; message: string }[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(key => {
      const known = near(key, issue.path, schema)
      const where = issue.path.length > 0 ? `'${placeOf(issue.path)}' has` : 'There is'
      const advice = known ? ` Did you mean '${known}'?` : ' Remove it, or look it up with: infer config explain'
      return { at: [...issue.path, key], message: `${where} no setting '${key}'.${advice}` }
    })
  if (issue.path.length === 0 && !isMap(document.contents))
    return [{ at: [], message: "The file must consist of settings, such as 'models:' with a list below it." }]
  const failure = failureOfIssues(new z.ZodError([issue]), value)
  return [{ at: issue.path, message: failure.message.replace(/^Missing required parameter: /, 'Missing: ') }]
}

/** Returns `path:line:column` of a value, or of the node that should contain it if it is missing. */
export function placeIn(document: Document, text: string, path: string, at: readonly PropertyKey[]): string {
  const position = positionIn(document, text, at)
  return position ? `${path}:${position.line}:${position.column}` : path
}

/** Returns the same for values of a file that was read and found valid. */
export function placesIn(path: string): (at: readonly PropertyKey[]) => string {
  const text = readFileSync(path, 'utf8')
  const { document } = readYaml(text, path)
  return at => placeIn(document, text, path, at)
}

/** Returns line and column, from 1, of a value, or of the node that should contain it if it is missing. */
export function positionIn(
  document: Document,
  text: string,
  at: readonly PropertyKey[],
): { line: number; column: number } | undefined {
  let node: unknown = document.contents
  let offset = startOf(node)
  for (const part of at) {
    const pair: unknown = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && key.value === part)
      : isSeq(node)
        ? node.items[Number(part)]
        : undefined
    if (pair === undefined) break
    offset = startOf(isPair(pair) ? pair.key : pair) ?? offset
    node = isPair(pair) ? pair.value : pair
  }
  if (offset === undefined) return undefined
  const before = text.slice(0, offset).split('\n')
  return { line: before.length, column: before.at(-1)!.length + 1 }
}

/** Names that other programs use, by the setting that is meant. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  id: ['name', 'model_name', 'model_id'],
  source: ['model', 'model_path', 'path', 'file', 'gguf', 'repo'],
  url: ['base_url', 'api_base', 'endpoint', 'address', 'host'],
  api_key_env: ['api_key', 'apikey', 'key', 'token'],
  context_length: ['context', 'context_size', 'context_window', 'ctx', 'ctx_size', 'n_ctx', 'num_ctx', 'max_model_len'],
  concurrency: ['parallel', 'num_parallel', 'slots', 'max_num_seqs', 'max_concurrency'],
  gpu_layers: ['n_gpu_layers', 'num_gpu', 'ngl'],
  speculative: ['speculative_config', 'spec_type', 'draft', 'ngram'],
  kv_type: ['cache_type', 'cache_type_k', 'kv_cache_type'],
  memory: ['vram', 'gpu_memory', 'memory_limit'],
  idle_ttl: ['ttl', 'keep_alive', 'idle_timeout'],
  args: ['arguments', 'extra_args', 'options', 'flags'],
  command: ['cmd', 'exec', 'entrypoint'],
  env: ['environment'],
  voice_aliases: ['voice_map'],
}

const startOf = (node: unknown): number | undefined => (node as { range?: [number] } | null | undefined)?.range?.[0]

interface Shape {
  $ref?: string
  $defs?: Record<string, Shape>
  properties?: Record<string, Shape>
  additionalProperties?: Shape | boolean
  items?: Shape
  anyOf?: Shape[]
  oneOf?: Shape[]
}

/** Returns the most similar setting at this path of the schema; undefined where none is similar. */
function near(name: string, path: readonly PropertyKey[], schema: Shape): string | undefined {
  const resolve = (shape: Shape | undefined): Shape[] => {
    if (shape?.$ref) return resolve(schema.$defs?.[shape.$ref.split('/').at(-1)!])
    return shape ? [shape, ...[...(shape.anyOf ?? []), ...(shape.oneOf ?? [])].flatMap(resolve)] : []
  }
  let shapes = resolve(schema)
  for (const part of path)
    shapes = shapes.flatMap(shape => {
      const { items, properties, additionalProperties } = shape
      const other = typeof additionalProperties === 'object' ? additionalProperties : undefined
      return resolve(typeof part === 'number' ? items : (properties?.[String(part)] ?? other))
    })
  const known = shapes.flatMap(shape => Object.keys(shape.properties ?? {}))
  return known.find(one => otherNames[one]?.includes(name.toLowerCase())) ?? nearest(name, known)
}
